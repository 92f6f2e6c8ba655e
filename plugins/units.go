package plugins

import (
	"encoding"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Duration is an option that holds a time span, written with its unit: "200ms", "2s", "1h30m". Never negative.
type Duration time.Duration

var (
	_ encoding.TextUnmarshaler = (*Duration)(nil)
	_ Typed                    = Duration(0)
)

// OptionType says that it is a duration.
func (Duration) OptionType() (name string, values []string) { return "duration", nil }

// UnmarshalText parses the text form.
func (d *Duration) UnmarshalText(text []byte) error {
	v, err := time.ParseDuration(string(text))
	if err != nil {
		return fmt.Errorf("%q is no duration; it is a number with a unit, such as 200ms, 2s or 1h30m", text)
	}

	if v < 0 {
		return fmt.Errorf("%q is negative", text)
	}

	*d = Duration(v)

	return nil
}

// Size is an option that holds a number of bytes: a whole number, alone or with the unit B, KB, MB, GB, KiB, MiB or
// GiB. Never negative.
type Size int64

var (
	_ encoding.TextUnmarshaler = (*Size)(nil)
	_ Typed                    = Size(0)
)

// OptionType says that it is a size.
func (Size) OptionType() (name string, values []string) { return "size", nil }

// UnmarshalText parses the text form.
func (s *Size) UnmarshalText(text []byte) error {
	digits := strings.TrimRight(string(text), "BKMGi")
	unit, known := bytesOf(string(text[len(digits):]))

	n, err := strconv.ParseUint(strings.TrimSpace(digits), 10, 63)

	switch {
	case errors.Is(err, strconv.ErrRange) || known && err == nil && n > math.MaxInt64/unit:
		return fmt.Errorf("%q is too large", text)
	case err != nil || !known:
		return fmt.Errorf("%q is no size; it is a whole number of bytes or has a unit, such as 64KiB or 1MiB", text)
	}

	*s = Size(n * unit)

	return nil
}

func bytesOf(unit string) (uint64, bool) {
	switch unit {
	case "", "B":
		return 1, true
	case "KB":
		return 1e3, true
	case "MB":
		return 1e6, true
	case "GB":
		return 1e9, true
	case "KiB":
		return 1 << 10, true
	case "MiB":
		return 1 << 20, true
	case "GiB":
		return 1 << 30, true
	default:
		return 0, false
	}
}
