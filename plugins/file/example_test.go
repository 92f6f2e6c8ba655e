package file_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/millrace/millrace/pipeline"
	"github.com/millrace/millrace/plugins/file"
)

func ExampleSink() {
	folder, err := os.MkdirTemp("", "quakes")
	if err != nil {
		fmt.Println(err)

		return
	}
	defer func() { _ = os.RemoveAll(folder) }()

	archive, err := file.New(file.Options{Path: filepath.Join(folder, "archive.jsonl")}, nil)
	if err != nil {
		fmt.Println(err)

		return
	}

	// A job opens, calls and closes the sink of a channel itself.
	ctx := context.Background()
	_ = archive.Open(ctx)
	err = archive.Write(ctx, []*pipeline.Message{{Body: []byte(`{"mag":6.4}`)}, {Body: []byte(`{"mag":`)}})
	_ = archive.Close()

	lines, _ := os.ReadFile(filepath.Join(folder, "archive.jsonl"))
	fmt.Print(string(lines))

	if failures, ok := errors.AsType[*pipeline.BatchError](err); ok {
		fmt.Println(failures.Failed)
	}
	// Output:
	// {"mag":6.4}
	// map[1:file: the body is not one line of JSON; set format: text where lines are any text]
}
