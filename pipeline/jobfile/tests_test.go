package jobfile_test

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/millrace/millrace/pipeline/jobfile"
)

func TestBrokenTestFilesAreToldEveryMistakeToo(t *testing.T) {
	t.Parallel()

	for _, file := range files(t, "tests", 4) {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()

			src, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}

			_, err = jobfile.ParseTests(filepath.Base(file), src)
			if err == nil {
				t.Fatal("no mistake was found")
			}

			golden(t, strings.TrimSuffix(file, ".yaml")+".txt", err.Error()+"\n")
		})
	}
}

func TestAFileOfTestsSaysWhatGoesInAndWhatComesOut(t *testing.T) {
	t.Parallel()

	tests, err := jobfile.ParseTests("t.yaml", []byte(`
job: job.yaml
name: second
variables: { LANES: 4, KEY: abc }
tests:
  - name: one
    in:
      - { key: k, tag: t, topic: a, id: i, props: { p: 1 }, body: { mag: 6.5, list: [1, two, null, true] } }
      - body: ${plain} text
    out:
      alerts: [ { key: "", body: [1] } ]
      nothing: []
      archive: any
    fail: { stage: a/b, error: text, key: k }
  - in: []
`))
	if err != nil {
		t.Fatal(err)
	}

	if tests.File != "job.yaml" || tests.Job != "second" ||
		!reflect.DeepEqual(tests.Variables, map[string]string{"LANES": "4", "KEY": "abc"}) || len(tests.Cases) != 2 {
		t.Fatalf("%+v", tests)
	}

	c := tests.Cases[0]
	if c.Name != "one" || tests.Cases[1].Name != "line 15" || len(c.In) != 2 || !reflect.DeepEqual(c.Any, []string{"archive"}) {
		t.Errorf("%+v", c)
	}

	in := c.In[0]
	if *in.Key != "k" || *in.Tag != "t" || in.Topic != "a" || in.ID != "i" || in.Props["p"] != "1" ||
		string(in.Body) != `{"list":[1,"two",null,true],"mag":6.5}` || string(c.In[1].Body) != "${plain} text" {
		t.Errorf("%+v %s", in, in.Body)
	}

	out := c.Out["alerts"][0]
	if *out.Key != "" || out.Tag != nil || string(out.Body) != "[1]" {
		t.Errorf("%+v", out)
	}

	if nothing, ok := c.Out["nothing"]; !ok || len(nothing) != 0 {
		t.Errorf("%+v", c.Out)
	}

	if f := c.Fail[0]; f.Stage != "a/b" || f.Error != "text" || *f.Key != "k" {
		t.Errorf("%+v", f)
	}
}

func FuzzParseTests(f *testing.F) {
	for _, file := range files(f, "tests", 4) {
		src, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}

		f.Add(src)
	}

	f.Fuzz(func(t *testing.T, src []byte) {
		if tests, err := jobfile.ParseTests("f", src); (tests == nil) == (err == nil) {
			t.Fatal("neither tests nor a mistake, or both")
		}
	})
}
