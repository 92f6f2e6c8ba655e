package exec

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/millrace/millrace/plugins"
)

func TestAProgramThatCannotStartStopsTheJob(t *testing.T) {
	t.Parallel()

	silent := helper("silent")
	silent.Start = plugins.Duration(50 * time.Millisecond)

	for want, o := range map[string]Options{
		"executable file not found":          {Command: []string{"no-such-program"}},
		"the program has ended: exit status": helper("exit"),
		"speaks version 0 of the protocol":   helper("old"),
		"something else than hello":          helper("rude"),
		"a frame of 4294967295 bytes":        helper("talkative"),
		"context deadline exceeded":          silent,
		"no such file or directory":          {Command: []string{os.Args[0]}, Dir: "/no/such/folder"},
	} {
		g := setup(t, o, nil)
		if err := g.Open(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %q", o.Command, err, want)
		}
	}
}

func TestStartsArePutOff(t *testing.T) {
	t.Parallel()

	o := helper("exit")
	o.Restart = plugins.Duration(time.Hour)
	g := setup(t, o, nil)

	if _, failed := work(t, g, "a"); failed[0] == nil {
		t.Fatal("a program that ends is no failure")
	}

	start := time.Now()

	_, failed := workFor(t, g, 20*time.Millisecond, "a")
	if !errors.Is(failed[0], context.DeadlineExceeded) || !strings.Contains(failed[0].Error(), "started again in 1h") {
		t.Errorf("the failure after %s is %v", time.Since(start), failed[0])
	}

	if c := g.Meter(); c["starts"] != 1 {
		t.Errorf("counted %v", c)
	}

	w := &worker{options: Options{Restart: plugins.Duration(time.Second)}}

	var waits []time.Duration

	for range 9 {
		w.putOff()
		waits = append(waits, time.Until(w.notYet).Round(time.Second)/time.Second)
	}

	if want := []time.Duration{1, 2, 4, 8, 16, 32, 64, 100, 100}; !slices.Equal(waits, want) {
		t.Errorf("waits %d, want %d", waits, want)
	}
}

func TestWhatTheProgramSaysIsLogged(t *testing.T) {
	t.Parallel()

	core, lines := observer.New(zap.InfoLevel)
	g := setup(t, helper("plain"), zap.New(core))
	long := strings.Repeat("x", 5000)

	work(t, g, "log one", "log "+long)

	if err := g.Close(); err != nil {
		t.Fatal(err)
	}

	var got []string
	for _, line := range lines.All() {
		got = append(got, line.Message)
	}

	if len(got) != 3 || got[0] != "one" || got[1]+got[2] != long {
		t.Errorf("logged %.100q", got)
	}
}

func TestCloseEndsAProgramWithAllThatItHasStarted(t *testing.T) {
	t.Parallel()

	o := helper("stubborn")
	g := setup(t, o, nil)

	outs, failed := work(t, g, "offspring")
	if len(failed) > 0 {
		t.Fatal(failed)
	}

	pid, err := strconv.Atoi(outs[0])
	if err != nil {
		t.Fatal(err)
	}

	start := time.Now()

	if err := g.Close(); err != nil {
		t.Fatal(err)
	}

	if took := time.Since(start); took > 3*grace {
		t.Errorf("closing took %s", took)
	}

	for alive(pid) {
		if time.Since(start) > 20*time.Second {
			t.Fatal("what the program has started still runs")
		}

		<-time.After(10 * time.Millisecond) // whoever takes care of orphans has to see it first
	}

	if _, failed := work(t, g, "a"); failed[0] == nil || !strings.Contains(failed[0].Error(), "closed") {
		t.Errorf("after Close: %v", failed[0])
	}
}

// alive reports whether a process runs; one that is dead and not yet taken care of does not.
func alive(pid int) bool {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return !os.IsNotExist(err) && syscall.Kill(pid, 0) == nil
	}

	_, state, _ := strings.Cut(string(status), ") ")

	return !strings.HasPrefix(state, "Z")
}
