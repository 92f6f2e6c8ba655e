package rocketmq

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"net"
	"os"
	"regexp"
	"strconv"
	"strings"
)

const (
	retryMark = "%RETRY%"
	deadMark  = "%DLQ%"
)

// nameForm is what brokers accept as the name of a topic or a group.
var nameForm = regexp.MustCompile(`^[%|a-zA-Z0-9_-]+$`) //nolint:gochecknoglobals // never changed

// checkName returns an error when the brokers would refuse the name.
func checkName(what, name string, most int) error {
	if !nameForm.MatchString(name) {
		return fmt.Errorf("rocketmq: %s %q: a name has letters, digits, and any of %%|_-, and at least one of them", what, name)
	}

	if len(name) > most {
		return fmt.Errorf("rocketmq: %s %q has %d characters; RocketMQ allows %d", what, name, len(name), most)
	}

	return nil
}

// namespace wraps names for the wire.
type namespace string

// wrap returns the name of a topic or group on the wire. The mark of retry topics and dead letters stays in front.
func (n namespace) wrap(name string) string {
	if n == "" {
		return name
	}

	for _, mark := range []string{retryMark, deadMark} {
		if rest, found := strings.CutPrefix(name, mark); found {
			return mark + string(n) + "%" + rest
		}
	}

	return string(n) + "%" + name
}

// unwrap is the opposite of wrap; a name that is not in the namespace is returned as it is.
func (n namespace) unwrap(name string) string {
	if n == "" {
		return name
	}

	for _, mark := range []string{retryMark, deadMark} {
		if rest, found := strings.CutPrefix(name, mark); found {
			return mark + strings.TrimPrefix(rest, string(n)+"%")
		}
	}

	return strings.TrimPrefix(name, string(n)+"%")
}

// localIP returns the address that this machine is known by: its first that is not the loopback, or that.
func localIP() string {
	addrs, _ := net.InterfaceAddrs() // none is as good as an error

	for _, addr := range addrs {
		if ip, ok := addr.(*net.IPNet); ok && ip.IP.IsGlobalUnicast() && ip.IP.To4() != nil {
			return ip.IP.String()
		}
	}

	return "127.0.0.1"
}

// madeUp returns the name of an instance that nobody named: it cannot be another's, also where containers share addresses
// and process numbers.
func madeUp() string {
	host, err := os.Hostname()
	if err != nil {
		host = "host"
	}

	return host + "#" + strconv.Itoa(os.Getpid()) + "#" + chance()
}

// chance returns 64 random bits.
func chance() string {
	var bits [8]byte

	_, _ = rand.Read(bits[:]) // never fails

	return hex.EncodeToString(bits[:])
}
