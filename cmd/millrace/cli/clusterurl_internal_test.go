package cli

import (
	"strings"
	"testing"

	"github.com/millrace/millrace/pipeline/jobfile"
)

func variables(set map[string]string) jobfile.Variables {
	return jobfile.Variables{Lookup: func(name string) (string, bool) {
		v, ok := set[name]

		return v, ok
	}}
}

func TestClustersAreNamedByAddress(t *testing.T) {
	t.Parallel()

	r, err := parseCluster("rocketmq://a:1,b:2?tls=true&ca=ca.pem&namespace=n",
		variables(map[string]string{"RMQ_KEY": "k", "RMQ_SECRET": "s", "RMQ_TOKEN": "t"}))
	if err != nil {
		t.Fatal(err)
	}

	if strings.Join(r.NameServers, " ") != "a:1 b:2" || !r.TLS || r.CA != "ca.pem" || r.Namespace != "n" ||
		r.AccessKey != "k" || r.SecretKey != "s" || r.SecurityToken != "t" {
		t.Errorf("read %+v", r)
	}

	for text, want := range map[string]string{
		"rocketmq://":                        "write it like rocketmq://127.0.0.1:9876",
		"rocketmq://a":                       "is not host:port",
		"rocketmq://k:s@a:1":                 "put credentials into the variables RMQ_KEY and RMQ_SECRET",
		"rocketmq://a:1?tsl=true":            `did you mean "tls"?`,
		"rocketmq://a:1?tls=maybe":           "use true or false",
		"rocketmq://a:1?ca=x":                "add tls=true",
		"rocketmq://a:1?tls=1&certificate=x": "give both, or none",
		"rocketmq://a:1?%zz":                 "invalid URL escape",
	} {
		if _, err := parseCluster(text, variables(nil)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}

	if _, err := parseCluster("rocketmq://a:1", variables(map[string]string{"RMQ_KEY": "k"})); err == nil {
		t.Error("a key without a secret is taken")
	}
}

func FuzzParseCluster(f *testing.F) {
	for _, text := range []string{"rocketmq://a:1,b:2?tls=true", "rocketmq://[::1]:1/", "rocketmq://?", "rocketmq://a:1?namespace=%"} {
		f.Add(text)
	}

	f.Fuzz(func(t *testing.T, text string) {
		r, err := parseCluster(text, variables(nil))
		if err == nil && (len(r.NameServers) == 0 || !r.TLS && r.CA != "") {
			t.Errorf("%q is read as %+v", text, r)
		}
	})
}
