package remoting_test

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"strconv"
	"strings"
	"testing"

	"github.com/millrace/millrace/consumer/rocketmq/remoting"
)

const (
	vectorJSON   = `{"code":38,"language":"GO","version":473,"opaque":7,"flag":0,"extFields":{"consumerGroup":"G"}}`
	vectorBinary = "00260901d900000007000000000000000000000014000d636f6e73756d657247726f75700000000147"
)

func vectorCommand() *remoting.Command {
	return &remoting.Command{
		Code: remoting.GetConsumerList, Language: "GO", Version: 473, Opaque: 7,
		Ext: map[string]string{"consumerGroup": "G"},
	}
}

// framed puts a header of a form, and a body, into a frame.
func framed(form byte, head, body []byte) []byte {
	frame := binary.BigEndian.AppendUint32(nil, uint32(4+len(head)+len(body)))
	frame = binary.BigEndian.AppendUint32(frame, uint32(form)<<24|uint32(len(head)))

	return append(append(frame, head...), body...)
}

func unhex(tb testing.TB, s string) []byte {
	tb.Helper()

	b, err := hex.DecodeString(s)
	if err != nil {
		tb.Fatal(err)
	}

	return b
}

func same(a, b *remoting.Command) bool {
	return a.Code == b.Code && a.Language == b.Language && a.Version == b.Version && a.Opaque == b.Opaque &&
		a.Flag == b.Flag && a.Remark == b.Remark && maps.Equal(a.Ext, b.Ext) && bytes.Equal(a.Body, b.Body)
}

func TestFramesAreWrittenAsTheVectorSays(t *testing.T) {
	t.Parallel()

	got, err := remoting.AppendFrame([]byte("before"), vectorCommand())
	if err != nil {
		t.Fatal(err)
	}

	if want := append(unhex(t, hex.EncodeToString([]byte("before"))+"000000630000005f"), vectorJSON...); !bytes.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestFramesOfBothFormsAreRead(t *testing.T) {
	t.Parallel()

	if got := hex.EncodeToString(framed(1, unhex(t, vectorBinary), nil)[:8]); got != "0000002d01000029" {
		t.Fatalf("the frame begins with %s", got)
	}

	body := vectorCommand()
	body.Body = []byte("body")

	answer := vectorCommand()
	answer.Flag, answer.Remark, answer.Ext = 1, "größer", nil

	for name, c := range map[string]struct {
		frame []byte
		want  *remoting.Command
	}{
		"json":             {framed(0, []byte(vectorJSON), nil), vectorCommand()},
		"binary":           {framed(1, unhex(t, vectorBinary), nil), vectorCommand()},
		"json and body":    {framed(0, []byte(vectorJSON), []byte("body")), body},
		"binary and body":  {framed(1, unhex(t, vectorBinary), []byte("body")), body},
		"binary, a remark": {framed(1, unhex(t, "00260901d9000000070000000100000008"+hex.EncodeToString([]byte("größer"))+"00000000"), nil), answer},
		"members that are null or unknown": {
			framed(0, []byte(`{"code":38,"extFields":null,"flag":1,"language":"GO","opaque":7,"remark":"größer",`+
				`"serializeTypeCurrentRPC":"JSON","version":473}`), nil), answer,
		},
		"negative numbers, an ordinal that nobody has": {
			framed(1, unhex(t, "ffff7f"+"fffe"+"fffffffd"+"00000001"+"00000000"+"00000000"), nil),
			&remoting.Command{Code: -1, Language: "OTHER", Version: -2, Opaque: -3, Flag: 1},
		},
	} {
		r := bytes.NewReader(append(c.frame, "next"...))

		got, err := remoting.ReadFrame(r)
		if err != nil || !same(got, c.want) {
			t.Errorf("%s: got %+v, %v; want %+v", name, got, err, c.want)
		}

		if rest, _ := io.ReadAll(r); string(rest) != "next" {
			t.Errorf("%s: %q is left of what follows the frame", name, rest)
		}
	}
}

func TestBrokenFramesAreRefused(t *testing.T) {
	t.Parallel()

	members, fields := make([]string, remoting.MaxFields+1), make([]string, remoting.MaxFields+1)
	for i := range members {
		members[i] = fmt.Sprintf(`"%d":""`, i)
		fields[i] = fmt.Sprintf("0004%08x00000000", i)
	}

	many := `{"extFields":{` + strings.Join(members, ",") + `}}`
	manyBinary := strings.Join(fields, "")

	for name, frame := range map[string][]byte{
		"shorter than its mark":     unhex(t, "0000000300000000"),
		"negative":                  unhex(t, "8000000000000000"),
		"above the limit":           binary.BigEndian.AppendUint32(nil, remoting.MaxFrame-3),
		"header longer than it":     unhex(t, "000000060000000361626364"),
		"header above its limit":    framed(0, append([]byte(vectorJSON), strings.Repeat(" ", remoting.MaxHeader)...), nil),
		"unknown form":              framed(2, []byte(vectorJSON), nil),
		"no header":                 framed(0, nil, nil),
		"no JSON":                   framed(0, []byte(vectorJSON[:40]), nil),
		"a list":                    framed(0, []byte(`[1]`), nil),
		"fields that are no texts":  framed(0, []byte(`{"extFields":{"a":1}}`), nil),
		"opaque of 40 bits":         framed(0, []byte(`{"opaque":1099511627776}`), nil),
		"too many fields":           framed(0, []byte(many), nil),
		"too many binary fields":    framed(1, unhex(t, vectorBinary[:34]+fmt.Sprintf("%08x", len(manyBinary)/2)+manyBinary), nil),
		"binary, remark too long":   framed(1, unhex(t, "00260901d9000000070000000000000005"+"00000000"), nil),
		"binary, remark negative":   framed(1, unhex(t, "00260901d90000000700000000ffffffff"+"00000000"), nil),
		"binary, fields too long":   framed(1, unhex(t, "00260901d9000000070000000000000000"+"00000001"), nil),
		"binary, key too long":      framed(1, unhex(t, "00260901d9000000070000000000000000"+"00000006"+"00ff41000000"), nil),
		"binary, value too long":    framed(1, unhex(t, "00260901d9000000070000000000000000"+"00000007"+"000141000000ff"), nil),
		"binary, value is negative": framed(1, unhex(t, "00260901d9000000070000000000000000"+"00000007"+"000141ffffffff"), nil),
	} {
		if c, err := remoting.ReadFrame(bytes.NewReader(frame)); !errors.Is(err, remoting.ErrFrame) {
			t.Errorf("%s: read as %+v, %v", name, c, err)
		}
	}

	binaryHead := unhex(t, vectorBinary)
	for n := range binaryHead {
		if c, err := remoting.ReadFrame(bytes.NewReader(framed(1, binaryHead[:n], nil))); !errors.Is(err, remoting.ErrFrame) {
			t.Errorf("binary header cut to %d bytes: read as %+v, %v", n, c, err)
		}
	}
}

func TestTheEndBetweenFramesIsNotAnEndWithinOne(t *testing.T) {
	t.Parallel()

	frame := framed(0, []byte(vectorJSON), []byte("body"))

	for n := range frame {
		want := io.ErrUnexpectedEOF
		if n == 0 {
			want = io.EOF
		}

		if _, err := remoting.ReadFrame(bytes.NewReader(frame[:n])); !errors.Is(err, want) {
			t.Errorf("after %d bytes: %v, want %v", n, err, want)
		}
	}
}

func TestWhatNoFrameCanCarryIsNotWritten(t *testing.T) {
	t.Parallel()

	many := map[string]string{}
	for i := range remoting.MaxFields + 1 {
		many[strconv.Itoa(i)] = ""
	}

	for name, c := range map[string]struct {
		command remoting.Command
		want    error
	}{
		"body":   {remoting.Command{Body: make([]byte, remoting.MaxFrame)}, remoting.ErrTooLarge},
		"header": {remoting.Command{Ext: map[string]string{"a": strings.Repeat("a", remoting.MaxHeader)}}, remoting.ErrTooLarge},
		"fields": {remoting.Command{Ext: many}, remoting.ErrTooLarge},
		"value":  {remoting.Command{Ext: map[string]string{"a": "\xff"}}, remoting.ErrFrame},
		"remark": {remoting.Command{Remark: "\xff"}, remoting.ErrFrame},
		"key":    {remoting.Command{Ext: map[string]string{"\xff": ""}}, remoting.ErrFrame},
	} {
		if frame, err := remoting.AppendFrame(nil, &c.command); !errors.Is(err, c.want) || frame != nil {
			t.Errorf("%s: %d bytes, %v; want %v", name, len(frame), err, c.want)
		}
	}

	empty, err := remoting.AppendFrame(nil, &remoting.Command{})
	if err != nil {
		t.Fatal(err)
	}

	full, err := remoting.AppendFrame(nil, &remoting.Command{Body: make([]byte, remoting.MaxFrame-len(empty))})
	if err != nil || len(full) != remoting.MaxFrame {
		t.Fatalf("a frame at the limit: %d bytes, %v", len(full), err)
	}

	if _, err := remoting.ReadFrame(bytes.NewReader(full)); err != nil {
		t.Errorf("a frame at the limit is not read: %v", err)
	}
}

// FuzzReadFrame holds that any bytes are either refused or a command that is the same after it was written and read again.
func FuzzReadFrame(f *testing.F) {
	f.Add(framed(0, []byte(vectorJSON), nil))
	f.Add(framed(0, []byte(`{"code":0,"flag":1,"remark":"r","extFields":{"a":"b","c":null}}`), []byte("body")))
	f.Add(framed(1, unhex(f, vectorBinary), []byte("body")))
	f.Add(framed(1, unhex(f, "00260901d900000007000000010000000161"+"00000007"+"00014100000000"), nil))
	f.Add(framed(2, nil, nil))
	f.Add([]byte{0, 0, 0, 4, 0, 0, 0, 0})
	f.Add([]byte{0xff, 0xff, 0xff, 0xff})

	f.Fuzz(func(t *testing.T, data []byte) {
		first, err := remoting.ReadFrame(bytes.NewReader(data))
		if err != nil {
			return
		}

		frame, err := remoting.AppendFrame(nil, first)
		if errors.Is(err, remoting.ErrFrame) || errors.Is(err, remoting.ErrTooLarge) {
			return // binary headers carry any bytes, and in fewer bytes
		}

		if err != nil {
			t.Fatal(err)
		}

		second, err := remoting.ReadFrame(bytes.NewReader(frame))
		if err != nil {
			t.Fatalf("%+v is written as %q, which is not read: %v", first, frame, err)
		}

		if !same(first, second) {
			t.Fatalf("%+v came back as %+v", first, second)
		}
	})
}
