package rocketmqfake_test

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/consumer/rocketmq/remoting"
)

const patience = 30 * time.Second

// asker asks a cluster, real or not, and writes down what it answers.
type asker struct {
	*testing.T

	nameServer, addr, name string
	dial                   func(context.Context, string) (net.Conn, error)
	client                 *remoting.Client
	pushed                 chan *remoting.Command

	last       *remoting.Command
	transcript []string
}

// open gives the asker a new connection.
func (a *asker) open() {
	a.pushed = make(chan *remoting.Command, 64)
	pushed := a.pushed
	a.client = remoting.NewClient(remoting.Options{
		Dial: a.dial,
		Handle: func(_ context.Context, _ string, r *remoting.Command) *remoting.Command {
			pushed <- r

			return &remoting.Command{Body: []byte("my state")}
		},
	})
	a.Cleanup(a.client.Close)
}

// other is another client of the same cluster with the same transcript.
func (a *asker) other() *asker {
	b := &asker{T: a.T, nameServer: a.nameServer, addr: a.addr, name: a.name, dial: a.dial}
	b.open()

	return b
}

func (a *asker) notef(format string, args ...any) {
	line := fmt.Sprintf(format, args...)
	line = strings.ReplaceAll(line, a.addr, "ADDR")
	a.transcript = append(a.transcript, strings.ReplaceAll(line, a.name, "NAME"))
}

// ask asks the broker and notes the answer.
func (a *asker) ask(what string, code int, ext map[string]string, body any) {
	a.Helper()
	a.answered(what, code, a.call(a.addr, code, ext, body))
}

// call asks somebody. A refusal is an answer too.
func (a *asker) call(addr string, code int, ext map[string]string, body any) *remoting.Command {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()

	fields := map[string]string{"bname": a.name}
	maps.Copy(fields, ext)

	var raw []byte

	switch body := body.(type) {
	case nil:
	case []byte:
		raw = body
	default:
		raw, _ = json.Marshal(body)
	}

	answer, err := a.client.Call(ctx, addr, &remoting.Command{Code: code, Ext: fields, Body: raw})
	if refused, ok := errors.AsType[*remoting.ResponseError](err); ok {
		return &remoting.Command{Code: refused.Code, Remark: refused.Remark, Ext: refused.Ext}
	} else if err != nil {
		a.Errorf("request %d: %v", code, err)

		return &remoting.Command{Code: -1}
	}

	return answer
}

func (a *asker) answered(what string, code int, answer *remoting.Command) {
	a.last = answer
	line := []string{fmt.Sprintf("%s: code %d", what, answer.Code)}

	for _, key := range []string{"offset", "queueId", "queueOffset", "nextBeginOffset", "minOffset", "maxOffset"} {
		if value, found := answer.Ext[key]; found {
			line = append(line, key+"="+value)
		}
	}

	if code == remoting.PullMessage {
		if answer.Code == remoting.Success || answer.Code >= remoting.PullNotFound && answer.Code <= remoting.PullOffsetMoved {
			line = append(line, answer.Remark) // the status, which is for machines
		}

		for _, r := range records(a.T, answer.Body) {
			line = append(line, "\n\t"+r.String())
		}
	} else if len(answer.Body) > 0 {
		line = append(line, string(answer.Body))
	}

	a.notef("%s", strings.Join(line, " "))

	if answer.Code != remoting.Success {
		a.Logf("%s says of %q: %s", a.addr, what, answer.Remark)
	}
}

// seen is what a test sees of a record.
type seen struct {
	physical, offset int64
	queue, flag      uint32
	sysFlag, times   uint32
	body, topic      string
	props            map[string]string
}

func (s seen) String() string {
	props := ""

	for _, key := range slices.Sorted(maps.Keys(s.props)) {
		value := s.props[key]

		// Some versions note these on some messages; they mean nothing to readers.
		if key == "CLUSTER" || key == "MSG_REGION" || key == "TRACE_ON" {
			continue
		}

		if key == "ORIGIN_MESSAGE_ID" && len(value) == 32 {
			value = "an id"
		}

		props += " " + key + "=" + value
	}

	return fmt.Sprintf("%s/%d@%d flag %d sysFlag %d times %d %q%s", s.topic, s.queue, s.offset, s.flag, s.sysFlag, s.times, s.body, props)
}

// records reads the body of a pull; it is the tests' own reader, so that fake and client cannot agree on something wrong.
func records(t *testing.T, raw []byte) (all []seen) {
	t.Helper()

	be := binary.BigEndian

	for len(raw) > 0 {
		r := raw[:be.Uint32(raw)]
		raw = raw[len(r):]
		s := seen{
			queue: be.Uint32(r[12:]), flag: be.Uint32(r[16:]), offset: int64(be.Uint64(r[20:])), physical: int64(be.Uint64(r[28:])),
			sysFlag: be.Uint32(r[36:]), times: be.Uint32(r[72:]), props: map[string]string{},
		}
		rest := r[84:]
		size := be.Uint32(rest)
		s.body, rest = string(rest[4:4+size]), rest[4+size:]
		topic := int(rest[0])
		s.topic, rest = string(rest[1:1+topic]), rest[1+topic:]

		for entry := range strings.SplitSeq(string(rest[2:]), "\x02") {
			if key, value, found := strings.Cut(entry, "\x01"); found {
				s.props[key] = value
			}
		}

		all = append(all, s)
	}

	return all
}

// physical is where the first record of the last answer is in the log.
func (a *asker) physical() string {
	all := records(a.T, a.last.Body)
	if len(all) == 0 {
		a.Fatalf("no record to send back; so far:\n%s", strings.Join(a.transcript, "\n"))
	}

	return strconv.FormatInt(all[0].physical, 10)
}

// await asks again until an answer pleases, and notes only that.
func (a *asker) await(what string, code int, ext map[string]string, pleases func(*remoting.Command) bool) {
	a.Helper()

	var answer *remoting.Command

	a.eventually(func() bool {
		answer = a.call(a.addr, code, ext, nil)

		return pleases(answer)
	})
	a.answered(what, code, answer)
}

// eventually tries until something is so, or patience ends.
func (a *asker) eventually(is func() bool) {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()

	for end := time.Now().Add(patience); !is() && time.Now().Before(end); {
		<-tick.C
	}
}

// notified waits for a notice of the broker's.
func (a *asker) notified(what string) {
	a.Helper()

	select {
	case r := <-a.pushed:
		a.notef("%s: pushed %d for %s", what, r.Code, r.Ext["consumerGroup"])

		for len(a.pushed) > 0 {
			<-a.pushed
		}
	case <-time.After(patience):
		a.notef("%s: nothing pushed", what)
	}
}
