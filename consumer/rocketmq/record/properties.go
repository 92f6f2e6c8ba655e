package record

import (
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
)

// Names of properties that RocketMQ itself gives a meaning.
const (
	PropKeys              = "KEYS"
	PropTags              = "TAGS"
	PropWait              = "WAIT"  // whether the broker answers only when the message is as safe as it promises
	PropDelay             = "DELAY" // a level, from 1
	PropUniqueKey         = "UNIQ_KEY"
	PropRetryTopic        = "RETRY_TOPIC"
	PropOriginID          = "ORIGIN_MESSAGE_ID"
	PropReconsumeTimes    = "RECONSUME_TIME"
	PropMaxReconsumeTimes = "MAX_RECONSUME_TIMES"
	PropRealTopic         = "REAL_TOPIC"
	PropRealQueue         = "REAL_QID"
	PropShardingKey       = "__SHARDINGKEY"
	PropInnerCount        = "INNER_NUM"  // of a batch that is stored as one record: its messages
	PropInnerBase         = "INNER_BASE" // and the offset of the first
)

// PropEmpty is millrace's own mark of a message whose body is empty. Brokers take none that is, so there is a space in its place.
const PropEmpty = "millrace.empty"

const (
	endOfKey   = "\x01"
	endOfValue = "\x02"

	// fill is what stands in a value that brokers would drop.
	fill = "\x00"
)

// MaxProps is the most bytes of properties: their length is a signed short.
const MaxProps = 1<<15 - 1

// Properties are the properties of a message in the form in which they travel: each key, \x01, its value, \x02. What is no key
// and value is passed over, as RocketMQ does. Where a key is there twice the first counts: brokers append the properties of a
// batch to those of each message in it, and among them an id, which all messages of a batch of Java's would share otherwise.
type Properties string

// Join returns properties of a map, sorted by key. It does not check them: see [CheckProperty].
func Join(props map[string]string) Properties {
	var text strings.Builder

	for _, key := range slices.Sorted(maps.Keys(props)) {
		text.WriteString(key + endOfKey + props[key] + endOfValue)
	}

	return Properties(text.String())
}

// CheckProperty returns an error for a property that would not arrive as it was sent.
func CheckProperty(key, value string) error {
	switch {
	case key == "":
		return fmt.Errorf("a property with the value %.40q has no name", value)
	case strings.ContainsAny(key+value, endOfKey+endOfValue):
		return fmt.Errorf(`the property %.40q has a character \x01 or \x02 in it, which RocketMQ separates properties with`, key)
	default:
		return nil
	}
}

// FillValue returns a value as it is published. Brokers drop empty ones, so one that is empty, or has nothing but NULs in it,
// gets one NUL more.
func FillValue(value string) string {
	if strings.Trim(value, fill) == "" {
		return value + fill
	}

	return value
}

// UnfillValue is the opposite of FillValue.
func UnfillValue(value string) string {
	if strings.Trim(value, fill) == "" {
		return strings.TrimPrefix(value, fill)
	}

	return value
}

// All returns the keys and values in their order, each as often as it is there.
func (p Properties) All() iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		for rest := string(p); rest != ""; {
			entry := rest

			if end := strings.IndexByte(rest, endOfValue[0]); end >= 0 {
				entry, rest = rest[:end], rest[end+1:]
			} else {
				rest = ""
			}

			if key := strings.IndexByte(entry, endOfKey[0]); key > 0 && !yield(entry[:key], entry[key+1:]) {
				return
			}
		}
	}
}

// Get returns the value of a key.
func (p Properties) Get(key string) (value string, found bool) {
	for k, v := range p.All() {
		if k == key {
			return v, true
		}
	}

	return "", false
}

// Map returns the properties as a map of the caller's, never nil.
func (p Properties) Map() map[string]string {
	props := make(map[string]string, strings.Count(string(p), endOfKey))

	for key, value := range p.All() {
		if _, found := props[key]; !found {
			props[key] = value
		}
	}

	return props
}
