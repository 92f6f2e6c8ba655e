package rocketmq

import (
	"errors"
	"slices"
	"strings"
	"unicode/utf16"
)

// Filter says which messages of a topic are wanted. The zero value wants all. At most one field is set.
type Filter struct {
	// Tags are the wanted tags, such as "created || paid"; "*" and empty mean all.
	Tags string
	// SQL is an expression over the messages' properties, in the broker's dialect of SQL92. The brokers must have
	// enablePropertyFilter; they are asked whether they understand the expression before anything is read.
	SQL string
}

// Kinds of filters on the wire.
const (
	kindTag = "TAG"
	kindSQL = "SQL92"
	all     = "*"
)

func (f Filter) check() error {
	switch {
	case f.Tags != "" && f.SQL != "":
		return errors.New("both of the fields Tags and SQL are set: choose one")
	case f.Tags != "" && f.Tags != all && len(f.tags()) == 0:
		return errors.New("field Tags names no tag: write such as \"created || paid\", or leave it empty for all")
	case slices.Contains(f.tags(), all):
		return errors.New("field Tags has * beside tags: leave it empty for all")
	default:
		return nil
	}
}

// expression returns the filter as it goes over the wire.
func (f Filter) expression() (text, kind string) {
	switch tags := f.tags(); {
	case f.SQL != "":
		return f.SQL, kindSQL
	case len(tags) > 0:
		return strings.Join(tags, " || "), kindTag
	default:
		return all, kindTag
	}
}

// tags returns the wanted tags; none means all.
func (f Filter) tags() []string {
	if f.Tags == all {
		return nil
	}

	var tags []string

	for tag := range strings.SplitSeq(f.Tags, "||") {
		if tag = strings.TrimSpace(tag); tag != "" {
			tags = append(tags, tag)
		}
	}

	return tags
}

// hashOf is Java's hash of a string, by which brokers compare tags. Different tags may have the same.
func hashOf(text string) int32 {
	var h int32
	for _, unit := range utf16.Encode([]rune(text)) {
		h = 31*h + int32(unit)
	}

	return h
}
