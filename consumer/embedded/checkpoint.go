package embedded

import (
	"fmt"

	"github.com/millrace/millrace/consumer"
	"github.com/millrace/millrace/pipeline"
)

// checkpoint returns the value of a checkpoint: next, and the runs as one array of bounds.
func (e *encoder) checkpoint(key []byte, c consumer.Checkpoint) ([]byte, error) {
	e.begin(2)
	e.int(int64(c.Next))
	e.array(2 * len(c.Done))

	for _, r := range c.Done {
		e.int(int64(r.From))
		e.int(int64(r.To))
	}

	return e.sealed(key)
}

// checkpoint reads what encoder.checkpoint wrote. What it returns is valid.
func (d *decoder) checkpoint(key, value []byte) (consumer.Checkpoint, error) {
	d.begin(key, value, 2)

	c := consumer.Checkpoint{Next: pipeline.Offset(d.count())}
	n := d.array()

	if n%2 != 0 {
		d.fail()
	}

	for range n / 2 {
		c.Done = append(c.Done, consumer.Run{From: pipeline.Offset(d.count()), To: pipeline.Offset(d.count())})
	}

	if err := d.end(); err != nil {
		return consumer.Checkpoint{}, err
	}

	if err := c.Validate(); err != nil {
		return consumer.Checkpoint{}, fmt.Errorf("%w: %w", errFields, err)
	}

	return c, nil
}
