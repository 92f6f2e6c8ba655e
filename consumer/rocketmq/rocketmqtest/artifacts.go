package rocketmqtest

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

const (
	// fetchTimeout is how long Maven may take to fetch about a hundred megabytes; a guess.
	fetchTimeout = 8 * time.Minute
	// The plugin is pinned like the servers, so that the same command does the same next year.
	copyGoal = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies"
)

const pom = `<project>
  <modelVersion>4.0.0</modelVersion>
  <groupId>millrace</groupId>
  <artifactId>rocketmq-servers</artifactId>
  <version>1</version>
  <dependencies>
    <dependency>
      <groupId>org.apache.rocketmq</groupId><artifactId>rocketmq-namesrv</artifactId><version>%[1]s</version>
    </dependency>
    <dependency>
      <groupId>org.apache.rocketmq</groupId><artifactId>rocketmq-broker</artifactId><version>%[1]s</version>
    </dependency>
    <dependency>
      <groupId>org.apache.rocketmq</groupId><artifactId>rocketmq-tools</artifactId><version>%[1]s</version>
    </dependency>
  </dependencies>
</project>
`

// library returns the directory with the jars of a version, which it fetches when it is not there. A directory is either
// complete or does not exist, also when several processes fetch it at once.
func library(ctx context.Context, version string) (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("rocketmqtest: no place to keep the servers: %w", err)
	}

	root := filepath.Join(cache, "millrace", "rocketmq")
	dir := filepath.Join(root, version)

	if _, err := os.Stat(dir); err == nil {
		return dir, nil
	} else if !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("rocketmqtest: %w", err)
	}

	if err := os.MkdirAll(root, 0o750); err != nil {
		return "", fmt.Errorf("rocketmqtest: %w", err)
	}

	scratch, err := os.MkdirTemp(root, "fetching-")
	if err != nil {
		return "", fmt.Errorf("rocketmqtest: %w", err)
	}
	defer func() { _ = os.RemoveAll(scratch) }()

	fetched := filepath.Join(scratch, "lib")
	if err := fetch(ctx, version, scratch, fetched); err != nil {
		return "", err
	}

	// It fails when another process was faster, whose work is as good.
	if err := os.Rename(fetched, dir); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", fmt.Errorf("rocketmqtest: %w", err)
	}

	return dir, nil
}

// fetch puts the jars of a version into the directory to.
func fetch(ctx context.Context, version, scratch, to string) error {
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()

	file := filepath.Join(scratch, "pom.xml")
	if err := os.WriteFile(file, fmt.Appendf(nil, pom, version), 0o600); err != nil {
		return fmt.Errorf("rocketmqtest: %w", err)
	}

	mvn := exec.CommandContext(ctx, "mvn", "-q", "-B", "-f", file, copyGoal, //nolint:gosec // our own file and directory
		"-DoutputDirectory="+to, "-DincludeScope=runtime")
	mvn.Dir = scratch

	if output, err := mvn.CombinedOutput(); err != nil {
		return fmt.Errorf("rocketmqtest: Maven cannot fetch RocketMQ %s: %w\n%s", version, err, tail(output))
	}

	return nil
}
