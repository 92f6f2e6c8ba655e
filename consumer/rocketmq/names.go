package rocketmq

import (
	"crypto/rand"
	"net"
	"os"
	"strconv"
)

// madeID returns the name that brokers know a member by. That of a broadcasting member stays the same; any other is nobody
// else's, also where containers share addresses and process numbers, and sorts as the instance does.
func madeID(instance string, broadcast bool) string {
	switch {
	case broadcast:
		return localIP() + "@" + instance
	case instance == "":
		host, err := os.Hostname()
		if err != nil {
			host = "host"
		}

		instance = host + "#" + strconv.Itoa(os.Getpid())
	}

	return localIP() + "@" + instance + "#" + rand.Text()
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
