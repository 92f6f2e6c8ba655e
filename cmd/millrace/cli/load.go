package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/millrace/millrace/pipeline/jobfile"
)

// defaultFile is the job file when none is named: the one that init writes.
const defaultFile = "job.yaml"

// stdin is the name of a file that stands for the input.
const stdin = "-"

// filesOf returns the files of a command line.
func filesOf(args []string) []string {
	if len(args) == 0 {
		return []string{defaultFile}
	}

	return args
}

// read returns the text of a file, or the input.
func (a *app) read(name string) ([]byte, error) {
	if name == stdin {
		src, err := io.ReadAll(a.In)
		if err != nil {
			return nil, fmt.Errorf("the input: %w", err)
		}

		return src, nil
	}

	src, err := os.ReadFile(filepath.Clean(name))
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("there is no file %s; name one, or let `millrace init` write one", name)
	}

	if err != nil {
		return nil, fmt.Errorf("the job file: %w", err)
	}

	return src, nil
}

// load parses job files. It fails with the mistakes of all of them.
func (a *app) load(names []string) ([]*jobfile.File, error) {
	var (
		files []*jobfile.File
		wrong jobfile.Error
	)

	for _, name := range names {
		src, err := a.read(name)
		if err != nil {
			return nil, err
		}

		f, err := jobfile.Parse(name, src, a.registry, a.Variables)

		mistakes, ok := errors.AsType[*jobfile.Error](err)
		if ok {
			wrong.Mistakes = append(wrong.Mistakes, mistakes.Mistakes...)

			continue
		}

		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}

		files = append(files, f)
	}

	if len(wrong.Mistakes) > 0 {
		return nil, &wrong
	}

	return files, nil
}
