package admin

import (
	"testing"

	"github.com/millrace/millrace/pipeline"
)

func TestReadTableTakesQueuesForKeys(t *testing.T) {
	t.Parallel()

	got, err := readTable[struct {
		End pipeline.Offset `json:"brokerOffset"`
	}]([]byte(`{"consumeTps":0.0,"offsetTable":{{"brokerName":"b","queueId":2,"topic":"T"}:{"brokerOffset":7,"lastTimestamp":1}}}`))

	q := pipeline.Queue{Topic: "T", Broker: "b", ID: 2}
	if err != nil || len(got) != 1 || got[q].End != 7 {
		t.Errorf("read %v, %v", got, err)
	}
}

func FuzzReadTable(f *testing.F) {
	for _, body := range []string{
		`{"offsetTable":{{"brokerName":"b","queueId":0,"topic":"T"}:1}}`, `{"offsetTable":{}}`, `{}`, `[]`, `{"offsetTable":{1:2}}`,
		`{"offsetTable":{{"queueId":-1}:1}}`,
	} {
		f.Add([]byte(body))
	}

	f.Fuzz(func(t *testing.T, body []byte) {
		table, err := readTable[int64](body)
		if err != nil {
			return
		}

		for q := range table {
			if q.ID < 0 {
				t.Errorf("read a queue %v", q)
			}
		}
	})
}
