//go:build wasip1

// Command modes is a module that does what the first word of a body says, for the tests of the plugin.
package main

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"time"

	"github.com/millrace/millrace/plugins/wasm/guest"
)

func init() { guest.Handle(work) }

var (
	kept  [][]byte
	count int
)

func work(body []byte) error {
	word, rest, _ := strings.Cut(string(body[:min(len(body), 64)]), " ")

	switch word {
	case "drop":
	case "twice":
		guest.Emit(body)
		guest.Set("id", "i")
		guest.Set("key", "k")
		guest.Set("tag", "t")
		guest.Set("props.new", "n")
		guest.Emit([]byte(rest))
	case "fields":
		guest.Emit(fmt.Appendf(nil, "%s|%s|%s|%s|%s|%s|%d", guest.Get("id"), guest.Get("key"), guest.Get("tag"),
			guest.Get("topic"), guest.Get("props.p"), guest.Get("props.none"), len(guest.Get("props.long"))))
	case "fail":
		guest.Emit(body)

		return errors.New(rest)
	case "reject":
		return guest.Reject(errors.New(rest))
	case "later":
		return guest.RetryAfter(errors.New(rest), 1500*time.Millisecond)
	case "pass":
		guest.Set("tag", rest)
		guest.Pass()
	case "sleep":
		time.Sleep(time.Hour)
	case "log":
		guest.Log(rest)
	case "print":
		fmt.Print(string(body[len("print "):]))
	case "count":
		count++
		guest.Emit(fmt.Append(nil, count))
	case "panic":
		panic(rest)
	case "exit":
		os.Exit(5)
	case "hang":
		for n := 0; ; n++ {
			if n < 0 {
				guest.Log("never")
			}
		}
	case "memory":
		for {
			kept = append(kept, bytes.Repeat([]byte("x"), 1<<20))
		}
	case "huge":
		guest.Emit(make([]byte, 5<<20))
	case "recursion":
		return deeper(body)
	case "dial":
		_, err := net.Dial("tcp", rest)

		return err
	case "multiply":
		for n := range 100 {
			guest.Set(fmt.Sprint("props.", n), string(make([]byte, 1<<10)))
		}

		for {
			guest.Pass()
		}
	case "flood":
		for {
			guest.Emit(body)
		}
	case "read":
		content, err := os.ReadFile(rest)
		if err != nil {
			return err
		}

		guest.Emit(content)
	case "write":
		if err := os.WriteFile(rest, []byte("x"), 0o600); err != nil {
			return err
		}
	case "env":
		guest.Emit([]byte(os.Getenv(rest)))
	case "wrong":
		guest.Set("topic", "x")
	default:
		guest.Emit(body)
	}

	return nil
}

func deeper(body []byte) error {
	if err := deeper(append(body, 'x')); err != nil {
		return fmt.Errorf("deeper: %w", err)
	}

	return nil
}

func main() {}
