package cli_test

import (
	"net/url"
	"strings"
	"testing"

	"github.com/millrace/millrace/cmd/millrace/cli"
	"github.com/millrace/millrace/consumer/rocketmq/rocketmqtest"
)

// What the user of a guarded cluster signs with.
const guardedSecret = "open-sesame-9"

// A cluster that speaks nothing but TLS, to clients that it knows, and takes only what is signed; it filters nothing, and makes no
// groups in the end. Commands and jobs work on it, and say what is wrong where something is.
func TestAGuardedRocketMQ(t *testing.T) {
	t.Parallel()

	cert, key := rocketmqtest.Certificate(t, "127.0.0.1")
	otherCert, otherKey := rocketmqtest.Certificate(t, "127.0.0.1")
	c := rocketmqtest.Start(t, rocketmqtest.Options{
		Certificate: cert, Key: key, AskClients: true, AccessKey: "miller", SecretKey: guardedSecret,
		Config: map[string]string{"enablePropertyFilter": "false"},
	})

	w := setup(t)
	w.variables = map[string]string{"RMQ_KEY": "miller", "RMQ_SECRET": guardedSecret}

	for name, text := range map[string][]byte{"cert.pem": cert, "key.pem": key, "other.pem": otherCert, "otherkey.pem": otherKey} {
		w.write(name, string(text))
	}

	w.broker = "rocketmq://" + c.NameServer + "?" + url.Values{
		"tls": {"true"}, "ca": {w.path("cert.pem")}, "certificate": {w.path("cert.pem")}, "certificate_key": {w.path("key.pem")},
	}.Encode()

	messagesGoThrough(w)

	job := strings.ReplaceAll(strings.ReplaceAll(pickyJob, ", dead_letter: graves", ""), "{ embedded: DIR/data }", `
    rocketmq:
      name_servers: `+c.NameServer+`
      access_key: ${RMQ_KEY}
      secret_key: ${RMQ_SECRET}
      tls: true
      ca: DIR/cert.pem
      certificate: DIR/cert.pem
      certificate_key: DIR/key.pem
      call_timeout: 15s`)
	w.broker = w.write("job.yaml", job)

	run := w.start("run", "--verbose", w.broker)
	lettersAreFound(w)
	w.await("MEMBERS", "offsets", "pay")
	run.interrupt()

	if code := run.end(); code != cli.ExitOK || strings.Contains(run.err.String(), guardedSecret) {
		t.Fatalf("the job ended with %d\n%s", code, run.err)
	}

	lettersAreSettled(w)
	w.ok("", "offsets", "reset", "pay", "in", "first")
	mistakesAreTold(w, c, job)
}

// mistakesAreTold starts jobs that have something wrong each.
func mistakesAreTold(w *world, c *rocketmqtest.Cluster, job string) {
	w.t.Helper()

	broker := c.Brokers[0]
	broker.AddUser(w.t, "guest", guardedSecret)

	secret := "secret_key: ${RMQ_SECRET}"

	for _, mistake := range []struct {
		name, from, to string
		broker         map[string]string
		want           []string
	}{
		{
			name: "nobody vouches for the servers", from: "ca: DIR/cert.pem", to: "",
			want: []string{c.NameServer, "certificate signed by unknown authority"},
		},
		{
			name: "another authority", from: "ca: DIR/cert.pem", to: "ca: DIR/other.pem",
			want: []string{c.NameServer, "certificate signed by unknown authority"},
		},
		{
			name: "another name", from: "tls: true", to: "tls: true\n      server_name: mq.example.org",
			want: []string{c.NameServer, "mq.example.org"},
		},
		{name: "who we are is not shown", from: "certificate: DIR/cert.pem\n      certificate_key: DIR/key.pem", to: "", want: []string{c.NameServer}},
		{
			name: "somebody else is shown", from: "certificate: DIR/cert.pem\n      certificate_key: DIR/key.pem",
			to: "certificate: DIR/other.pem\n      certificate_key: DIR/otherkey.pem", want: []string{c.NameServer},
		},
		{
			name: "in the clear", from: "tls: true\n      ca: DIR/cert.pem\n      certificate: DIR/cert.pem\n      certificate_key: DIR/key.pem",
			want: []string{c.NameServer, "is one running there, and TLS the same on both sides?"},
		},
		{
			name: "a wrong secret", from: secret, to: secret + "x",
			want: []string{`no permission for group "pay"`, "check signature failed"},
		},
		{name: "nothing is signed", from: "access_key: ${RMQ_KEY}\n      " + secret, want: []string{`no permission for group "pay"`}},
		{name: "a user without rights", from: "${RMQ_KEY}", to: "guest", want: []string{`no permission for group "pay"`, "guest"}},
		{name: "a missing topic", from: "{ topic: in }", to: "{ topic: inn }", want: []string{`no topic "inn"; there are: in, out; mend the name, or create it: millrace topics create inn`}},
		{
			name: "filters are off", from: "tls: true", to: "tls: true\n      sql: { in: amount > 1 }",
			want: []string{"b0", `"in"`, "needs enablePropertyFilter=true"},
		},
		{
			name: "SQL that no broker understands", from: "tls: true", to: "tls: true\n      sql: { in: amount > }",
			broker: map[string]string{"enablePropertyFilter": "true"}, want: []string{"b0", `"in"`, "does not understand the SQL", "amount >"},
		},
		{
			name: "a group that nobody has made", from: "name: pay", to: "name: paid",
			broker: map[string]string{"autoCreateSubscriptionGroup": "false"}, want: []string{`unknown group "paid"`, "mqadmin updateSubGroup"},
		},
		{name: "a name server that is not there", from: c.NameServer, to: "127.0.0.1:1", want: []string{"unreachable", "127.0.0.1:1"}},
	} {
		if !strings.Contains(job, mistake.from) {
			w.t.Fatalf("%s: there is no %q", mistake.name, mistake.from)
		}

		if mistake.broker != nil {
			broker.Configure(w.t, mistake.broker)
		}

		file := w.write("wrong.yaml", strings.ReplaceAll(job, mistake.from, mistake.to))
		got := w.do("", "run", "--verbose", file)

		if got.code != cli.ExitFailed || strings.Contains(got.err, guardedSecret) {
			w.t.Errorf("%s: exit code %d\n%s", mistake.name, got.code, got.err)
		}

		for _, want := range mistake.want {
			if !strings.Contains(got.err, want) {
				w.t.Errorf("%s: it does not say %q:\n%s", mistake.name, want, got.err)
			}
		}
	}
}
