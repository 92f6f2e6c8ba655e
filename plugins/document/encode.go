package document

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"unicode/utf8"
)

// AppendText appends a text as a JSON string. What is no UTF-8 in it becomes U+FFFD.
func AppendText(dst []byte, text string) []byte {
	const hex = "0123456789abcdef"

	dst = append(dst, '"')
	from := 0

	for i := 0; i < len(text); {
		c := text[i]

		switch {
		case c >= utf8.RuneSelf:
			r, size := utf8.DecodeRuneInString(text[i:])
			if r == utf8.RuneError && size == 1 {
				dst = append(append(dst, text[from:i]...), `\ufffd`...)
				from = i + 1
			}

			i += size

			continue
		case c >= ' ' && c != '"' && c != '\\':
			i++

			continue
		}

		dst = append(dst, text[from:i]...)

		switch c {
		case '"', '\\':
			dst = append(dst, '\\', c)
		case '\n':
			dst = append(dst, '\\', 'n')
		case '\t':
			dst = append(dst, '\\', 't')
		case '\r':
			dst = append(dst, '\\', 'r')
		default:
			dst = append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		}

		i++
		from = i
	}

	return append(append(dst, text[from:]...), '"')
}

// AppendFloat appends a number, as an integer where it is one of up to 21 digits. It fails for what JSON has no number for.
func AppendFloat(dst []byte, f float64) ([]byte, error) {
	switch size := math.Abs(f); {
	case math.IsNaN(f) || math.IsInf(f, 0):
		return dst, fmt.Errorf("%v is no number in JSON", f)
	case size != 0 && (size < 1e-6 || size >= 1e21):
		return strconv.AppendFloat(dst, f, 'e', -1, 64), nil
	default:
		return strconv.AppendFloat(dst, f, 'f', -1, 64), nil
	}
}

// AppendAny appends any value as JSON, without the escapes that only HTML needs. It fails as encoding/json does.
func AppendAny(dst []byte, v any) ([]byte, error) {
	switch v := v.(type) {
	case nil:
		return append(dst, "null"...), nil
	case bool:
		return strconv.AppendBool(dst, v), nil
	case int:
		return strconv.AppendInt(dst, int64(v), 10), nil
	case float64:
		return AppendFloat(dst, v)
	case string:
		return AppendText(dst, v), nil
	}

	var b bytes.Buffer

	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)

	if err := e.Encode(v); err != nil {
		return dst, fmt.Errorf("as JSON: %w", err)
	}

	return append(dst, bytes.TrimSuffix(b.Bytes(), []byte("\n"))...), nil
}
