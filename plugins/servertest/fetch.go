package servertest

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"time"
)

const (
	// fetchTimeout is how long Maven may take to fetch some fifteen megabytes, and itself; a guess.
	fetchTimeout = 5 * time.Minute
	// The plugin is pinned like the servers, so that the same command does the same next year.
	copyGoal = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy"
	// largest is what one file of an archive may have, in bytes; a bound against nonsense.
	largest = 256 << 20
)

// errMissing begins what is said about a program that is not there.
var errMissing = errors.New("is not in the PATH")

// artifact is a published archive that holds a server's programs.
type artifact struct {
	group, name, version string
	// unpack puts the programs from the archive into a directory.
	unpack func(ctx context.Context, archive, to string) error
}

// directory returns the directory with the programs, which it fetches into the cache when they are not there. A directory is
// either complete or does not exist, also when several processes fetch it at once.
func (a artifact) directory(ctx context.Context, cache string) (string, error) {
	root := filepath.Join(cache, "millrace", "servers")
	dir := filepath.Join(root, a.name+"-"+a.version)

	if _, err := os.Stat(dir); err == nil {
		return dir, nil
	} else if !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("servertest: %w", err)
	}

	if err := os.MkdirAll(root, 0o755); err != nil { //nolint:gosec // programs, for whoever runs them
		return "", fmt.Errorf("servertest: no place to keep the servers: %w", err)
	}

	scratch, err := os.MkdirTemp(root, "fetching-")
	if err != nil {
		return "", fmt.Errorf("servertest: %w", err)
	}
	defer func() { _ = os.RemoveAll(scratch) }()

	archive, err := a.fetch(ctx, scratch)
	if err != nil {
		return "", err
	}

	programs := filepath.Join(scratch, "programs")
	if err := os.Mkdir(programs, 0o755); err != nil { //nolint:gosec // as above
		return "", fmt.Errorf("servertest: %w", err)
	}

	if err := a.unpack(ctx, archive, programs); err != nil {
		return "", fmt.Errorf("servertest: unpacking %s: %w", filepath.Base(archive), err)
	}

	// It fails when another process was faster, whose work is as good.
	if err := os.Rename(programs, dir); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", fmt.Errorf("servertest: %w", err)
	}

	return dir, nil
}

// fetch has Maven put the archive into a directory, and returns the file.
func (a artifact) fetch(ctx context.Context, scratch string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()

	output, err := run(ctx, nil, "mvn", "-q", "-B", copyGoal,
		"-Dartifact="+a.group+":"+a.name+":"+a.version, "-DoutputDirectory="+scratch)

	if errors.Is(err, errMissing) {
		return "", fmt.Errorf("servertest: %w, which fetches %s; install Maven (Debian: apt-get install maven)", err, a.name)
	}

	if err != nil {
		return "", fmt.Errorf("servertest: Maven cannot fetch %s %s: %w\n%s", a.name, a.version, err, tail(output))
	}

	return filepath.Join(scratch, a.name+"-"+a.version+".jar"), nil
}

// run runs a program and returns what it has printed.
func run(ctx context.Context, as *exec.Cmd, name string, args ...string) ([]byte, error) {
	program, err := exec.LookPath(name)
	if err != nil {
		return nil, fmt.Errorf("%s %w", name, errMissing)
	}

	command := exec.CommandContext(ctx, program, args...) //nolint:gosec // our own programs and arguments
	if as != nil {
		command.SysProcAttr, command.Dir, command.Env = as.SysProcAttr, as.Dir, as.Env
	}

	output, err := command.CombinedOutput()
	if err != nil {
		return output, fmt.Errorf("%s: %w", name, err)
	}

	return output, nil
}

// extract copies the file of a zip archive whose base name matches into a directory, and returns it.
func extract(archive, pattern, to string) (file string, err error) {
	r, err := zip.OpenReader(archive)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, r.Close()) }()

	for _, f := range r.File {
		name := path.Base(f.Name)
		if ok, err := path.Match(pattern, name); err != nil || !ok {
			continue
		}

		content, err := f.Open()
		if err != nil {
			return "", err
		}

		file := filepath.Join(to, name)

		out, err := os.OpenFile(file, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o755) //nolint:gosec // a program, in our directory
		if err != nil {
			return "", errors.Join(err, content.Close())
		}

		_, err = io.Copy(out, io.LimitReader(content, largest))

		return file, errors.Join(err, content.Close(), out.Close())
	}

	return "", fmt.Errorf("it has no %s: there is no such server for this operating system and processor", pattern)
}

// tail returns the last lines of a text.
func tail(text []byte) []byte {
	const most = 20

	lines := bytes.Split(bytes.TrimSpace(text), []byte("\n"))

	return bytes.Join(lines[max(0, len(lines)-most):], []byte("\n"))
}
