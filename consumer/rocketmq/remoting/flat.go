package remoting

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
)

// Headers are JSON of one shape, over and over, and encoding/json would take as long for them as all else that is done for
// the answer to a pull. What is here reads and writes that shape, and leaves whatever is unusual to encoding/json.

// appendHeader appends the JSON form of a header, with its fields sorted. All texts are valid UTF-8.
func appendHeader(dst []byte, c *Command) []byte {
	dst = strconv.AppendInt(append(dst, `{"code":`...), int64(c.Code), 10)
	dst = appendText(append(dst, `,"language":`...), c.Language)
	dst = strconv.AppendInt(append(dst, `,"version":`...), int64(c.Version), 10)
	dst = strconv.AppendInt(append(dst, `,"opaque":`...), int64(c.Opaque), 10)
	dst = strconv.AppendInt(append(dst, `,"flag":`...), int64(c.Flag), 10)

	if c.Remark != "" {
		dst = appendText(append(dst, `,"remark":`...), c.Remark)
	}

	if len(c.Ext) > 0 {
		dst = appendFields(append(dst, `,"extFields":`...), c.Ext)
	}

	return append(dst, '}')
}

func appendFields(dst []byte, ext map[string]string) []byte {
	var room [24]string // that no header but the longest needs more than

	keys := room[:0]
	for key := range ext {
		keys = append(keys, key)
	}

	slices.Sort(keys)

	before := byte('{')
	for _, key := range keys {
		dst = appendText(append(dst, before), key)
		dst = appendText(append(dst, ':'), ext[key])
		before = ','
	}

	return append(dst, '}')
}

func appendText(dst []byte, text string) []byte {
	if plainPrefix(text) < len(text) {
		escaped, _ := json.Marshal(text) //nolint:errchkjson // of a string it never fails

		return append(dst, escaped...)
	}

	return append(append(append(dst, '"'), text...), '"')
}

// plainPrefix returns how many bytes of a text mean the same in JSON as outside.
func plainPrefix(text string) int {
	for i := range len(text) {
		if c := text[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			return i
		}
	}

	return len(text)
}

// flat reads a header of the usual shape: no spaces, no escapes, no member that is unknown. When something is not as usual,
// odd is set and nothing that was read counts.
type flat struct {
	rest string
	odd  bool
}

// readFlat returns a header of the usual shape, or false. The texts are parts of one string.
func readFlat(head []byte) (*Command, bool) {
	f, c := &flat{rest: string(head)}, &Command{}

	for f.take('{'); !f.odd; {
		f.member(c)

		if strings.HasPrefix(f.rest, "}") {
			break
		}

		f.take(',')
	}

	return c, !f.odd && f.rest == "}"
}

func (f *flat) member(c *Command) {
	name := f.text()
	f.take(':')

	switch name {
	case "code":
		c.Code = int(f.number(strconv.IntSize))
	case "language":
		c.Language = f.text()
	case "version":
		c.Version = int(f.number(strconv.IntSize))
	case "opaque":
		c.Opaque = int32(f.number(32))
	case "flag":
		c.Flag = int32(f.number(32))
	case "remark":
		if !f.null() {
			c.Remark = f.text()
		}
	case "extFields":
		if f.odd = f.odd || c.Ext != nil; !f.null() {
			c.Ext = f.fields()
		}
	case "serializeTypeCurrentRPC":
		f.text()
	default:
		f.odd = true
	}
}

func (f *flat) fields() map[string]string {
	ext := make(map[string]string, 8)

	f.take('{')

	if strings.HasPrefix(f.rest, "}") {
		f.take('}')

		return ext
	}

	for !f.odd {
		key := f.text()
		f.take(':')
		ext[key] = f.text()

		if strings.HasPrefix(f.rest, "}") {
			break
		}

		f.take(',')
	}

	f.take('}')

	return ext
}

func (f *flat) take(c byte) {
	if f.odd || f.rest == "" || f.rest[0] != c {
		f.odd = true

		return
	}

	f.rest = f.rest[1:]
}

func (f *flat) null() bool {
	rest, is := strings.CutPrefix(f.rest, "null")
	f.rest = rest

	return is
}

func (f *flat) text() string {
	f.take('"')

	n := plainPrefix(f.rest)
	text := f.rest[:n]
	f.rest = f.rest[n:]
	f.take('"')

	return text
}

// number reads an integer of so many bits, as JSON writes them.
func (f *flat) number(bits int) int64 {
	n := 0
	for n < len(f.rest) && (f.rest[n] == '-' || '0' <= f.rest[n] && f.rest[n] <= '9') {
		n++
	}

	digits := strings.TrimPrefix(f.rest[:n], "-")
	value, err := strconv.ParseInt(f.rest[:n], 10, bits)
	f.odd = f.odd || err != nil || len(digits) > 1 && digits[0] == '0'
	f.rest = f.rest[n:]

	return value
}
