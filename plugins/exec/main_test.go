package exec

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	osexec "os/exec"
	"strings"
	"testing"
	"time"

	"github.com/vmihailenco/msgpack/v5"
	"go.uber.org/goleak"
)

// asHelper is the variable that makes this test binary a program of the plugin; it holds how the program behaves.
const asHelper = "EXEC_TEST_HELPER"

func TestMain(m *testing.M) {
	if mode := os.Getenv(asHelper); mode != "" {
		help(mode, bufio.NewReader(os.Stdin), os.Stdout)

		return
	}

	goleak.VerifyTestMain(m)
}

// helper returns options that run this binary as a program.
func helper(mode string) Options {
	return Options{Command: []string{os.Args[0]}, Env: map[string]string{asHelper: mode, "GORACE": "atexit_sleep_ms=0"}, Restart: 1}
}

// wireMessage is a message as a program sees it.
type wireMessage struct {
	_msgpack struct{} `msgpack:",as_array"` //nolint:unused // read by the library

	Header, Body []byte
}

type wireBatch struct {
	_msgpack struct{} `msgpack:",as_array"` //nolint:unused // read by the library

	Kind     string
	Number   uint64
	Messages []wireMessage
}

func say(to io.Writer, v any) {
	payload, err := msgpack.Marshal(v)
	if err != nil {
		panic(err)
	}

	_, _ = to.Write(framed(payload))
}

func framed(payload []byte) []byte {
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(payload))), payload...)
}

// help is a program that answers each message by what is in its body, after a hello that depends on the mode.
func help(mode string, from io.Reader, to io.Writer) {
	if _, err := readFrame(from, nil, 1<<20); err != nil {
		return
	}

	switch mode {
	case "silent":
		_, _ = io.Copy(io.Discard, from)

		return
	case "exit":
		fmt.Fprintln(os.Stderr, "I do not like it here")
		os.Exit(3) //nolint:revive // this is what the program does
	case "old":
		say(to, map[string]int{"millrace": 0})
	case "rude":
		say(to, "who are you?")
	case "talkative":
		_, _ = to.Write([]byte("\xff\xff\xff\xffhello"))
	default:
		say(to, map[string]int{"millrace": 1})
	}

	for {
		payload, err := readFrame(from, nil, 1<<28)
		if err != nil {
			if mode == "stubborn" {
				<-time.After(time.Hour)
			}

			return
		}

		var batch wireBatch
		if err := msgpack.Unmarshal(payload, &batch); err != nil {
			panic(err)
		}

		results := make([]any, len(batch.Messages))
		for i, m := range batch.Messages {
			results[i] = answer(m, to)
		}

		say(to, []any{"done", batch.Number, results})
	}
}

func answer(m wireMessage, to io.Writer) any {
	word, rest, _ := strings.Cut(string(m.Body), " ")

	switch word {
	case "crash":
		os.Exit(7) //nolint:revive // this is what the program does
	case "hang":
		<-time.After(time.Hour)
	case "nonsense":
		_, _ = to.Write(framed([]byte("\xc1")))
	case "offspring":
		// A child that outlives us, and holds our pipes.
		child := osexec.Command("sleep", "3600")
		child.Stdout, child.Stderr = os.Stdout, os.Stderr
		_ = child.Start()

		return []any{map[string]any{"body": fmt.Append(nil, child.Process.Pid)}}
	case "log":
		fmt.Fprintln(os.Stderr, rest)
	case "drop":
		return []any{}
	case "twice":
		return []any{nil, map[string]any{"body": []byte(rest), "id": "i", "key": "k", "tag": "t", "props": map[string]string{"p": "v"}}}
	case "header":
		return []any{map[string]any{"body": m.Header}}
	case "environment":
		return []any{map[string]any{"body": []byte(strings.Join(os.Environ(), "\n"))}}
	case "fail":
		return map[string]any{"error": rest}
	case "reject":
		return map[string]any{"error": rest, "reject": true}
	case "later":
		return map[string]any{"error": rest, "retry_ms": 1500}
	case "flood":
		return bytes.Repeat([]byte("x"), 1<<20)
	}

	return nil
}
