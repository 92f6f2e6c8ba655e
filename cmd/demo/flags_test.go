package main

import (
	"errors"
	"flag"
	"reflect"
	"strings"
	"testing"
	"time"
)

func TestFlagsBecomeOptions(t *testing.T) {
	t.Parallel()

	var said strings.Builder

	got, err := parseFlags(strings.Fields(
		"-keep d -broker rocketmq://h:1,i:2 -repeat 3 -seed 9 -poison -panic -hang -slow -retry-delay 5ms -kill-after 1s"), &said)
	want := options{
		keep: "d", broker: "rocketmq://h:1,i:2", repeat: 3, seed: 9, poison: true, panics: true, hang: true, slow: true,
		retryDelay: 5 * time.Millisecond, killAfter: time.Second,
	}

	if err != nil || !reflect.DeepEqual(got, want) || said.Len() > 0 {
		t.Errorf("got %+v, %v, %q", got, err, said.String())
	}

	got, err = parseFlags(nil, &said)
	if want := (options{repeat: 1, seed: 1, retryDelay: 200 * time.Millisecond}); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("without flags: %+v, %v", got, err)
	}
}

func TestWrongFlagsAreExplained(t *testing.T) {
	t.Parallel()

	for args, want := range map[string]string{
		"-poisen":                 "not defined: -poisen",
		"-repeat 0":               "-repeat is at least 1",
		"-kill-after 1s":          "-kill-after needs -keep",
		"-keep d -kill-after -1s": "not negative",
		"-retry-delay -1s":        "not negative",
		"-broker localhost:9876":  `write it like rocketmq://127.0.0.1:9876`,
		"quakes":                  `"quakes" was given`,
	} {
		var said strings.Builder

		if _, err := parseFlags(strings.Fields(args), &said); !errors.Is(err, errUsage) {
			t.Errorf("%s: %v", args, err)
		}

		if !strings.Contains(said.String(), want) {
			t.Errorf("%s: says %q, want %q in it", args, said.String(), want)
		}
	}
}

func TestHelpNamesEveryFlagAndExitCode(t *testing.T) {
	t.Parallel()

	var said strings.Builder

	if _, err := parseFlags([]string{"--help"}, &said); !errors.Is(err, flag.ErrHelp) {
		t.Errorf("the error is %v", err)
	}

	for _, want := range []string{
		"-keep dir", "-repeat n", "-seed number", "-poison", "-panic", "-hang", "-slow", "-retry-delay", "-kill-after",
		"  0    ", "  1    ", "  2    ", "  3    ", "  130  ", "  137  ", "go run ./cmd/demo",
	} {
		if !strings.Contains(said.String(), want) {
			t.Errorf("%q is not in the help", want)
		}
	}
}
