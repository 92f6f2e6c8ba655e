package producer_test

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/consumer"
	"github.com/millrace/millrace/consumer/rocketmq/producer"
	"github.com/millrace/millrace/consumer/rocketmq/record"
	"github.com/millrace/millrace/consumer/rocketmq/remoting"
	"github.com/millrace/millrace/consumer/rocketmq/rocketmqtest"
	"github.com/millrace/millrace/consumer/rocketmq/routes"
	"github.com/millrace/millrace/pipeline"
)

// create creates a topic of one queue at the cluster's first broker, and waits until the name server knows it.
func create(t *testing.T, c *rocketmqtest.Cluster, o remoting.Options, topic string) {
	t.Helper()

	r := newReader(t, c.NameServer, o)

	if _, err := r.client.Call(t.Context(), c.Brokers[0].Addr, &remoting.Command{Code: remoting.UpdateTopic, Ext: map[string]string{
		"topic": topic, "defaultTopic": "TBW102", "readQueueNums": "1", "writeQueueNums": "1", "perm": "6",
		"topicFilterType": "SINGLE_TAG", "topicSysFlag": "0", "order": "false",
	}}); err != nil {
		t.Fatal(err)
	}

	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()

	for {
		_, err := r.table.Refresh(t.Context(), topic)
		if err == nil {
			return
		}

		if _, unknown := errors.AsType[*consumer.UnknownTopicError](err); !unknown {
			t.Fatal(err)
		}

		<-tick.C
	}
}

// TestJavaReadsWhatIsSent has RocketMQ's own consumer read messages that were sent alone, compressed, delayed and in a batch.
func TestJavaReadsWhatIsSent(t *testing.T) {
	t.Parallel()

	cluster := rocketmqtest.Start(t, rocketmqtest.Options{})
	create(t, cluster, remoting.Options{}, "T")

	var want []string

	expect := func(sent producer.Sent, tag, key, body string, flag int) {
		want = append(want, fmt.Sprintf("got %s %s %s p=%s %d %d %.8s", sent.ID, tag, key, body[:1], flag, len(body), body))
	}
	message := func(tag, body string, flag int) producer.Message {
		return producer.Message{
			Tag: tag, Key: "k1 k2", Body: []byte(body), Flag: int32(flag), Props: map[string]string{"p": "p=" + body[:1], "empty": ""},
		}
	}

	var last *producer.Producer

	for tag, kind := range map[string]record.Compression{"zlib": record.Zlib, "lz4": record.LZ4, "zstd": record.Zstd} {
		last = open(t, producer.Options{NameServers: []string{cluster.NameServer}, Compression: kind})

		for _, body := range []string{"small", strings.Repeat("large ", 5000)} {
			sent, err := last.Send(t.Context(), "T", message(tag, body, 7))
			if err != nil || !sent.Durable {
				t.Fatal(sent, err)
			}

			expect(sent, tag, "k1 k2", body, 7)
		}
	}

	batch := []producer.Message{message("batch", "one", 1), message("batch", "two", 2), message("batch", "three", 3)}
	batch = append(batch, message("delayed", "four", 4))
	batch[3].Delay = 1

	sent, err := last.SendBatch(t.Context(), "T", batch)
	if err != nil {
		t.Fatal(err)
	}

	for i, m := range batch {
		expect(sent[i], m.Tag, m.Key, string(m.Body), int(m.Flag))
	}

	var got []string

	for line := range strings.Lines(cluster.Java(t, "testdata/Read.java", "T", strconv.Itoa(len(want)))) {
		if strings.HasPrefix(line, "got ") {
			got = append(got, strings.TrimSuffix(line, "\n"))
		}
	}

	slices.Sort(want)
	slices.Sort(got)

	if !slices.Equal(got, want) {
		t.Errorf("Java reads\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}

	checkRefusals(t, cluster, last)
}

// checkRefusals sends what a real broker does not take.
func checkRefusals(t *testing.T, cluster *rocketmqtest.Cluster, p *producer.Producer) {
	t.Helper()

	if _, err := p.Send(t.Context(), "none", producer.Message{}); err == nil || !strings.Contains(err.Error(), "there are: T") {
		t.Errorf("an unknown topic: %v", err)
	}

	large := open(t, producer.Options{NameServers: []string{cluster.NameServer}, MaxSize: 8 << 20})
	if _, err := large.Send(t.Context(), "T", producer.Message{Body: noise(5 << 20)}); !errors.Is(err, producer.ErrTooLarge) {
		t.Errorf("more than a broker takes: %v", err)
	}

	// Full properties leave room for what the broker adds to them.
	fits := producer.Message{Body: []byte("x"), Props: map[string]string{"p": strings.Repeat("x", 1<<15-1-512-100)}}
	if _, err := large.Send(t.Context(), "T", fits); err != nil {
		t.Errorf("the longest properties: %v", err)
	}

	// As large as one request of a batch becomes.
	var all []*pipeline.Message
	for range 20_000 {
		all = append(all, &pipeline.Message{Body: []byte("a small message, of which very many go into one request")})
	}

	if err := large.Publish(t.Context(), "T", all); err != nil {
		t.Errorf("many at once: %v", err)
	}
}

func TestSignedAndEncrypted(t *testing.T) {
	t.Parallel()

	cert, key := rocketmqtest.Certificate(t, "127.0.0.1")
	cluster := rocketmqtest.Start(t, rocketmqtest.Options{
		Certificate: cert, Key: key, AccessKey: "u", SecretKey: "12345678",
	})

	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(cert)

	right := remoting.Options{
		TLS: &tls.Config{RootCAs: pool}, Credentials: remoting.Credentials{AccessKey: "u", SecretKey: "12345678"},
	}
	create(t, cluster, right, "T")

	wrong := right
	wrong.Credentials.SecretKey = "87654321"
	plain := right
	plain.TLS = nil

	for name, c := range map[string]struct {
		options remoting.Options
		want    error
	}{
		"right": {right, nil}, "wrong secret": {wrong, routes.ErrNoPermission}, "in the clear": {plain, routes.ErrUnreachable},
	} {
		p := open(t, producer.Options{NameServers: []string{cluster.NameServer}, Remoting: c.options})

		_, err := p.Send(t.Context(), "T", producer.Message{Body: []byte(name)})
		if !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}

		t.Logf("%s: %v", name, err)
	}
}
