package routes

import (
	"strings"
	"testing"
)

func TestRoutesOfOldNameServersAreRead(t *testing.T) {
	t.Parallel()

	// Numbers as keys; a slave; a broker that is gone; one that only has a slave; one that is named twice.
	body := `{"brokerDatas":[{"brokerAddrs":{0:"m:1",1:"s:1",-1:"x:1"},"brokerName":"b0"},{"brokerAddrs":{2:"s:2"},"brokerName":"b1"}],
		"queueDatas":[{"brokerName":"b0","perm":6,"readQueueNums":2,"writeQueueNums":1},
		{"brokerName":"b0","perm":6,"readQueueNums":2,"writeQueueNums":1},
		{"brokerName":"b1","perm":6,"readQueueNums":1,"writeQueueNums":1},
		{"brokerName":"gone","perm":6,"readQueueNums":1,"writeQueueNums":1},
		{"brokerName":"b0","perm":6,"readQueueNums":-5,"writeQueueNums":-5}]}`

	r, err := parse("T", []byte(body))
	if err != nil {
		t.Fatal(err)
	}

	if len(r.Readable) != 3 || len(r.Writable) != 1 || r.Writable[0].String() != "T@b0/0" {
		t.Errorf("readable %v, writable %v", r.Readable, r.Writable)
	}

	for prefer, want := range map[int]string{0: "m:1", 1: "s:1", 5: "m:1"} {
		if got := r.Reader("b0", prefer); got != want {
			t.Errorf("id %d of b0 is %s", prefer, got)
		}
	}

	if r.Reader("b1", 0) != "s:2" || r.Master("b1") != "" || r.Reader("gone", 0) != "" {
		t.Errorf("b1 is at %q, gone at %q", r.Reader("b1", 0), r.Reader("gone", 0))
	}
}

func FuzzParse(f *testing.F) {
	const one = `{"brokerDatas":[{"brokerAddrs":{0:"m:1"},"brokerName":"b"}],"queueDatas":[{"brokerName":"b","perm":6,` +
		`"readQueueNums":2,"writeQueueNums":1}]}`

	f.Add([]byte(one))
	f.Add([]byte(strings.Replace(one, "2", "2000000000", 1)))
	f.Fuzz(func(t *testing.T, body []byte) {
		r, err := parse("T", body)
		if err != nil {
			return
		}

		if len(r.Readable) > maxQueues || len(r.Writable) > maxQueues {
			t.Fatalf("%d queues", len(r.Readable))
		}

		for _, q := range r.Writable {
			if r.Master(q.Broker) == "" {
				t.Fatalf("%s is writable and has no master", q)
			}
		}

		for _, q := range r.Readable {
			if r.Reader(q.Broker, 0) == "" {
				t.Fatalf("%s is readable and has no address", q)
			}
		}
	})
}
