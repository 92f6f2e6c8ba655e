package rocketmqfake

import (
	"strconv"

	"github.com/millrace/millrace/consumer/rocketmq/remoting"
)

// fields reads a request's fields. The first that is missing or no number makes failed answer.
type fields struct {
	ext map[string]string
	bad string
}

func fieldsOf(r *remoting.Command) *fields { return &fields{ext: r.Ext} }

func (f *fields) text(name string) string {
	value, found := f.ext[name]
	if !found && f.bad == "" {
		f.bad = name
	}

	return value
}

func (f *fields) number(name string) int64 {
	value, err := strconv.ParseInt(f.text(name), 10, 64)
	if err != nil && f.bad == "" {
		f.bad = name
	}

	return value
}

// optional is number for a field that may be left out.
func (f *fields) optional(name string, otherwise int64) int64 {
	if _, found := f.ext[name]; !found {
		return otherwise
	}

	return f.number(name)
}

func (f *fields) failed() *remoting.Command {
	if f.bad == "" {
		return nil
	}

	return fail(remoting.SystemError, "the custom field <%s> is null", f.bad)
}

func decimal[N int | int64](n N) string { return strconv.FormatInt(int64(n), 10) }
