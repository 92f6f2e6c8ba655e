package rocketmqtest

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// makeHome makes a server's directory. Old versions do not start without these three files; the others have them inside.
func makeHome(dir string) error {
	conf := filepath.Join(dir, "conf")
	if err := os.MkdirAll(conf, 0o750); err != nil {
		return fmt.Errorf("rocketmqtest: %w", err)
	}

	quiet := []byte("<configuration><root level=\"WARN\"/></configuration>\n")

	for _, name := range []string{"logback_namesrv.xml", "logback_broker.xml", "logback_tools.xml"} {
		if err := os.WriteFile(filepath.Join(conf, name), quiet, 0o600); err != nil {
			return fmt.Errorf("rocketmqtest: %w", err)
		}
	}

	return nil
}

// writeConfig writes Java properties and returns their file.
func writeConfig(dir string, config map[string]string) (string, error) {
	file := filepath.Join(dir, "server.conf")
	if err := os.WriteFile(file, []byte(properties(config)), 0o600); err != nil {
		return "", fmt.Errorf("rocketmqtest: %w", err)
	}

	return file, nil
}

// properties are settings in the form of Java's properties.
func properties(config map[string]string) string {
	var text strings.Builder

	for _, key := range slices.Sorted(maps.Keys(config)) {
		fmt.Fprintf(&text, "%s=%s\n", key, config[key])
	}

	return text.String()
}
