package rocketmqfake

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf16"

	"github.com/millrace/millrace/consumer/rocketmq/record"
	"github.com/millrace/millrace/consumer/rocketmq/remoting"
)

// filter is a subscription's choice of messages. The zero value chooses all.
type filter struct {
	// tags are the hashes of the tags to choose, nil for all: like the real brokers this one knows no more, so that different
	// tags may pass.
	tags map[int32]bool
	// sql must all hold.
	sql []comparison
}

func (f filter) matches(m *message) bool {
	tag, found := m.props[record.PropTags]
	if f.tags != nil && (!found || !f.tags[hash(tag)]) {
		return false
	}

	for _, one := range f.sql {
		value, found := m.props[one.name]
		if !found || !one.holds(value) {
			return false
		}
	}

	return true
}

func isTag(s subscription) bool { return s.ExpressionType == "" || s.ExpressionType == "TAG" }

func tagFilter(expression string) filter {
	if expression == "" || expression == "*" {
		return filter{}
	}

	chosen := map[int32]bool{}

	for tag := range strings.SplitSeq(expression, "||") {
		if tag = strings.TrimSpace(tag); tag != "" {
			chosen[hash(tag)] = true
		}
	}

	return filter{tags: chosen}
}

// hash is Java's of a string.
func hash(text string) int32 {
	var h int32
	for _, unit := range utf16.Encode([]rune(text)) {
		h = 31*h + int32(unit)
	}

	return h
}

// comparison is "property operator literal".
type comparison struct {
	name, operator string
	text           string
	number         float64
	isNumber       bool
}

var comparisonForm = regexp.MustCompile(`^\s*([A-Za-z_]\w*)\s*(=|<>|>=|<=|>|<)\s*(?:'([^']*)'|(-?\d+(?:\.\d+)?))\s*$`)

// parseSQL reads the part of SQL92 that this broker knows: comparisons with literals, joined by AND.
func parseSQL(expression string) (filter, error) {
	var all []comparison

	for part := range strings.SplitSeq(expression, " AND ") {
		found := comparisonForm.FindStringSubmatch(part)
		if found == nil {
			return filter{}, fmt.Errorf("Encountered %q", part) //nolint:staticcheck // a server's words, which begin like that
		}

		one := comparison{name: found[1], operator: found[2], text: found[3], isNumber: found[4] != ""}
		if one.isNumber {
			one.number, _ = strconv.ParseFloat(found[4], 64) // the form says that it is one
		}

		all = append(all, one)
	}

	return filter{sql: all}, nil
}

func (c comparison) holds(value string) bool {
	if !c.isNumber {
		return c.operator == "=" && value == c.text || c.operator == "<>" && value != c.text
	}

	number, err := strconv.ParseFloat(value, 64)
	if err != nil {
		return false
	}

	switch c.operator {
	case "=":
		return number == c.number
	case "<>":
		return number != c.number
	case ">":
		return number > c.number
	case ">=":
		return number >= c.number
	case "<":
		return number < c.number
	default:
		return number <= c.number
	}
}

// check tells whether the broker can filter by a subscription.
func (b *Broker) check(r *remoting.Command) *remoting.Command {
	var request struct {
		Subscription subscription `json:"subscriptionData"`
	}

	if bad := decodeBody(r, &request); bad != nil {
		return bad
	}

	s := request.Subscription
	if isTag(s) {
		return ok(nil, nil)
	}

	if b.cluster.options.NoFilters {
		return noFilters(s)
	}

	if _, err := parseSQL(s.SubString); err != nil {
		return fail(remoting.SubscriptionParseFail, "%v", err)
	}

	return ok(nil, nil)
}

func noFilters(s subscription) *remoting.Command {
	return fail(remoting.SystemError, "The broker does not support consumer to filter message by %s", s.ExpressionType)
}
