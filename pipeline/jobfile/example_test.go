package jobfile_test

import (
	"fmt"

	"github.com/millrace/millrace/pipeline/jobfile"
	"github.com/millrace/millrace/plugins"
	"github.com/millrace/millrace/plugins/standard"
)

func ExampleParse() {
	const src = `
name: quakes
broker: { embedded: ./data }
source: { topic: quakes, starts: first }
channels:
  classify:
    routes:
      - { tag: major, to: alert }
  alerts:
    sink: { topic: { name: alerts } }
`

	var registry plugins.Registry
	if err := standard.Register(&registry); err != nil {
		fmt.Println(err)

		return
	}

	_, err := jobfile.Parse("quakes.yaml", []byte(src), &registry, jobfile.Environment())
	fmt.Println(err)
	// Output:
	// quakes.yaml:4:26  unknown key "starts" in source; did you mean "start"?
	// quakes.yaml:8:27  no channel "alert"; did you mean "alerts"?
}
