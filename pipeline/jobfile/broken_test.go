package jobfile_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/millrace/millrace/pipeline/jobfile"
)

func TestBrokenFilesAreToldEveryMistakeWithItsPlaceAndCure(t *testing.T) {
	t.Parallel()

	for _, file := range files(t, "broken", 20) {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()

			src, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}

			_, err = jobfile.Parse(filepath.Base(file), src, registry(t), variables())
			if err == nil {
				t.Fatal("no mistake was found")
			}

			if _, ok := errors.AsType[*jobfile.Error](err); !ok {
				t.Fatalf("the error is a %T", err)
			}

			golden(t, strings.TrimSuffix(file, ".yaml")+".txt", err.Error()+"\n")
		})
	}
}

func TestNoMessageShowsWhatAVariableHolds(t *testing.T) {
	t.Parallel()

	for _, file := range files(t, "broken", 20) {
		text, err := os.ReadFile(strings.TrimSuffix(file, ".yaml") + ".txt")
		if err != nil {
			t.Fatal(err)
		}

		for _, secret := range []string{"hunter2", "open sesame"} {
			if strings.Contains(string(text), secret) {
				t.Errorf("%s shows a secret", file)
			}
		}
	}
}
