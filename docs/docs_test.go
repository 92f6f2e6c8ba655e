// Package docs_test checks what no compiler and no linter reads: the files of the repository as a reader finds them.
package docs_test

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const root = ".."

// A link in running text, a heading, a test, and a Go file named with its folder.
var (
	linkPattern    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	headingPattern = regexp.MustCompile(`(?m)^#+ +(.+)$`)
	goTestPattern  = regexp.MustCompile("`((?:Test|Fuzz|Benchmark|Example)[A-Z]\\w*)`")
	goFilePattern  = regexp.MustCompile("`([\\w.-]+(?:/[\\w.-]+)+\\.go)`")
	goFuncPattern  = regexp.MustCompile(`(?m)^func (\w+)\(`)
	goFencePattern = regexp.MustCompile("(?s)```go\n(.*?)```")
	fencePattern   = regexp.MustCompile("(?s)```.*?```")
	inlinePattern  = regexp.MustCompile("`[^`\n]*`")
	notSlugPattern = regexp.MustCompile(`[^\p{L}\p{N}\- _]`)
)

func TestNoFileNamesTheMachineThatItWasWrittenOn(t *testing.T) {
	t.Parallel()

	// Put together here, so that this file does not find itself.
	forbidden := [][]byte{[]byte("/" + "work/"), []byte("/" + "root/"), []byte("/tmp/" + "bash_jobs")}

	eachFile(t, "", func(path string, content []byte) {
		for n, line := range bytes.Split(content, []byte("\n")) {
			for _, f := range forbidden {
				if bytes.Contains(line, f) {
					t.Errorf("%s:%d: has the machine path %q", path, n+1, f)
				}
			}
		}
	})
}

func TestEveryPackageSaysWhatItIs(t *testing.T) {
	t.Parallel()

	documented := map[string]bool{}

	eachFile(t, ".go", func(path string, content []byte) {
		if strings.HasSuffix(path, "_test.go") || strings.Contains(path, "testdata") {
			return
		}

		file, err := parser.ParseFile(token.NewFileSet(), path, content, parser.PackageClauseOnly|parser.ParseComments)
		if err != nil {
			t.Errorf("%s: %v", path, err)

			return
		}

		documented[filepath.Dir(path)] = documented[filepath.Dir(path)] || saysWhatItIs(file)
	})

	for dir, ok := range documented {
		if !ok {
			t.Errorf("%s: no file has a comment that begins with \"Package NAME\" (for a command: \"Command NAME\")", dir)
		}
	}
}

func saysWhatItIs(file *ast.File) bool {
	start := "Package " + file.Name.Name + " "
	if file.Name.Name == "main" {
		start = "Command "
	}

	return strings.HasPrefix(file.Doc.Text(), start)
}

func TestEveryRelativeLinkLeadsSomewhere(t *testing.T) {
	t.Parallel()

	eachFile(t, ".md", func(path string, content []byte) {
		text := inlinePattern.ReplaceAll(fencePattern.ReplaceAll(content, nil), []byte("code"))

		for _, match := range linkPattern.FindAllSubmatch(text, -1) {
			link := string(match[1])
			if strings.Contains(link, "://") || strings.HasPrefix(link, "mailto:") {
				continue
			}

			file, anchor, _ := strings.Cut(link, "#")

			target := path
			if file != "" {
				target = filepath.Join(filepath.Dir(path), file)
			}

			checkLink(t, path, link, target, anchor)
		}
	})
}

func checkLink(t *testing.T, path, link, target, anchor string) {
	t.Helper()

	if _, err := os.Stat(filepath.Join(root, target)); err != nil {
		t.Errorf("%s: the link %q leads nowhere", path, link)

		return
	}

	if anchor == "" {
		return
	}

	content, err := os.ReadFile(filepath.Join(root, target))
	if err != nil {
		t.Errorf("%s: the link %q has an anchor but its target is no file: %v", path, link, err)

		return
	}

	for _, heading := range headingPattern.FindAllSubmatch(fencePattern.ReplaceAll(content, nil), -1) {
		if slug(string(heading[1])) == anchor {
			return
		}
	}

	t.Errorf("%s: the link %q names a heading that %s does not have", path, link, target)
}

// slug returns the anchor that Markdown readers make of a heading.
func slug(heading string) string {
	return strings.ReplaceAll(notSlugPattern.ReplaceAllString(strings.ToLower(strings.TrimSpace(heading)), ""), " ", "-")
}

func TestEveryGoFileNamedInADocumentExists(t *testing.T) {
	t.Parallel()

	eachFile(t, ".md", func(path string, content []byte) {
		for _, match := range goFilePattern.FindAllSubmatch(content, -1) {
			if _, err := os.Stat(filepath.Join(root, string(match[1]))); err != nil {
				t.Errorf("%s: names %s, which does not exist", path, match[1])
			}
		}
	})
}

func TestEveryTestNamedInADocumentExists(t *testing.T) {
	t.Parallel()

	tests := map[string]bool{}

	eachFile(t, "_test.go", func(_ string, content []byte) {
		for _, match := range goFuncPattern.FindAllSubmatch(content, -1) {
			tests[string(match[1])] = true
		}
	})

	eachFile(t, ".md", func(path string, content []byte) {
		for _, match := range goTestPattern.FindAllSubmatch(content, -1) {
			if !tests[string(match[1])] {
				t.Errorf("%s: names the test %s, which does not exist", path, match[1])
			}
		}
	})
}

// The job that the README shows stands in a test, word by word, so it compiles, runs, and does what is said of it.
func TestJobOfTheReadmeIsOneThatRuns(t *testing.T) {
	t.Parallel()

	readme, err := os.ReadFile(filepath.Join(root, "README.md"))
	if err != nil {
		t.Fatal(err)
	}

	example, err := os.ReadFile(filepath.Join(root, "actors", "readme_test.go"))
	if err != nil {
		t.Fatal(err)
	}

	shown := goFencePattern.FindSubmatch(readme)
	if shown == nil {
		t.Fatal("the README shows no Go")
	}

	// In the test it is indented once.
	indented := regexp.MustCompile(`(?m)^(.)`).ReplaceAll(shown[1], []byte("\t$1"))
	if !bytes.Contains(example, indented) {
		t.Errorf("actors/readme_test.go does not hold what the README shows:\n%s", indented)
	}
}

// The job file that the README shows is an example, which the tests run.
func TestJobFileOfTheReadmeIsAnExample(t *testing.T) {
	t.Parallel()

	readme, err := os.ReadFile(filepath.Join(root, "README.md"))
	if err != nil {
		t.Fatal(err)
	}

	example, err := os.ReadFile(filepath.Join("examples", "quake-alerts", "job.yaml"))
	if err != nil {
		t.Fatal(err)
	}

	if !bytes.Contains(readme, slices.Concat([]byte("```yaml\n"), example, []byte("```"))) {
		t.Errorf("the README does not show docs/examples/quake-alerts/job.yaml:\n%s", example)
	}
}

// The module that docs/wasm.md shows is the example, which the tests of the plugin build and run.
func TestModuleOfTheDocumentIsTheExample(t *testing.T) {
	t.Parallel()

	document, err := os.ReadFile(filepath.Join(root, "docs", "wasm.md"))
	if err != nil {
		t.Fatal(err)
	}

	example, err := os.ReadFile(filepath.Join(root, "plugins", "wasm", "example", "main.go"))
	if err != nil {
		t.Fatal(err)
	}

	if shown := goFencePattern.FindSubmatch(document); len(shown) == 0 || !bytes.Equal(shown[1], example) {
		t.Errorf("docs/wasm.md does not show plugins/wasm/example/main.go:\n%s", example)
	}
}

// Everything that docs/plugins.md shows stands in its example, word by word.
func TestTutorialOfPluginsIsTheExample(t *testing.T) {
	t.Parallel()

	document, err := os.ReadFile(filepath.Join(root, "docs", "plugins.md"))
	if err != nil {
		t.Fatal(err)
	}

	var example []byte

	eachFile(t, "", func(path string, content []byte) {
		if strings.HasPrefix(path, "docs/examples/plugin/") {
			example = append(example, content...)
		}
	})

	shown := regexp.MustCompile("(?s)```(?:go|yaml)\n(.*?)```").FindAllSubmatch(document, -1)
	if len(shown) == 0 {
		t.Error("it shows nothing")
	}

	for _, match := range shown {
		if !bytes.Contains(example, match[1]) {
			t.Errorf("docs/examples/plugin does not hold what docs/plugins.md shows:\n%s", match[1])
		}
	}
}

// eachFile calls check with every text file below the root whose name ends in suffix. It fails the test when there is
// none, so that a wrong root or a moved folder never looks like a pass.
func eachFile(t *testing.T, suffix string, check func(path string, content []byte)) {
	t.Helper()

	files := 0

	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}

		if entry.IsDir() {
			switch entry.Name() {
			case ".git", ".cache", "bin", "out":
				return filepath.SkipDir
			}

			return nil
		}

		// In a linked worktree .git is a file, and says where the repository is.
		if entry.Name() == ".git" || !entry.Type().IsRegular() || !strings.HasSuffix(path, suffix) {
			return nil
		}

		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}

		// A file with a zero byte is not for reading.
		if bytes.IndexByte(content, 0) < 0 {
			files++

			check(strings.TrimPrefix(path, root+"/"), content)
		}

		return nil
	})
	if err != nil {
		t.Fatal(err)
	}

	if files == 0 {
		t.Fatalf("no file ends in %q below %s", suffix, root)
	}
}

// Each example has a README, which the tests of the examples run, and a line in their list.
func TestEveryExampleIsListedAndRun(t *testing.T) {
	t.Parallel()

	list, err := os.ReadFile(filepath.Join("examples", "README.md"))
	if err != nil {
		t.Fatal(err)
	}

	examples, err := os.ReadDir("examples")
	if err != nil {
		t.Fatal(err)
	}

	for _, e := range examples {
		if !e.IsDir() {
			continue
		}

		if !bytes.Contains(list, []byte("| ["+e.Name()+"](")) {
			t.Errorf("docs/examples/README.md does not list %s", e.Name())
		}

		if e.Name() == "plugin" {
			continue // a module of its own, which docs/plugins.md explains and its own test runs
		}

		readme, err := os.ReadFile(filepath.Join("examples", e.Name(), "README.md"))
		if err != nil || !bytes.Contains(readme, []byte("```sh\n")) {
			t.Errorf("docs/examples/%s has no README with commands: %v", e.Name(), err)
		}

		// The tests of the examples take every folder with such a file.
		if _, err := os.Stat(filepath.Join("examples", e.Name(), "job.yaml")); err != nil {
			t.Errorf("docs/examples/%s is not run: %v", e.Name(), err)
		}
	}
}
