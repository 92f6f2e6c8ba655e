package admin

import (
	"context"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/millrace/millrace/actors"
)

// collector turns the state of the jobs into metrics whenever somebody asks. Nothing is counted for it on the way of a
// message.
type collector struct {
	jobs   *Jobs
	job    []metric[*actors.Snapshot]
	queue  []metric[*actors.QueueStatus]
	chans  []metric[*actors.ChannelStatus]
	stands *prometheus.Desc
	plugin *prometheus.Desc
}

// metric is a number of a thing.
type metric[T any] struct {
	desc  *prometheus.Desc
	kind  prometheus.ValueType
	value func(T) float64
}

var _ prometheus.Collector = (*collector)(nil)

func describe[T any](name, help string, kind prometheus.ValueType, labels []string, value func(T) float64) metric[T] {
	return metric[T]{desc: prometheus.NewDesc("millrace_"+name, help, labels, nil), kind: kind, value: value}
}

func newCollector(jobs *Jobs) *collector {
	const counter, gauge = prometheus.CounterValue, prometheus.GaugeValue

	c := &collector{jobs: jobs}
	ofJob, ofQueue, ofChannel := []string{jobKey}, []string{jobKey, queueKey}, []string{jobKey, "channel"}

	c.stands = prometheus.NewDesc("millrace_queue_stands",
		"1 while the queue's offset does not move although there is something to do; the cause is a label.",
		[]string{jobKey, queueKey, "cause"}, nil)

	c.plugin = prometheus.NewDesc("millrace_plugin_total", "What plugins count themselves; the name of the count is a label.",
		[]string{jobKey, "channel", "stage", "count"}, nil)

	c.job = []metric[*actors.Snapshot]{
		describe("job_running", "1 while the job runs.", gauge, ofJob, func(s *actors.Snapshot) float64 {
			if s.State == stateRunning {
				return 1
			}

			return 0
		}),
		describe("job_hung_lanes", "Lanes that were given up because a call does not return.", gauge, ofJob,
			func(s *actors.Snapshot) float64 { return float64(s.Hung) }),
		describe("job_messages_away", "Messages that this process has sent back for a delay that is not over.", gauge, ofJob,
			func(s *actors.Snapshot) float64 { return float64(s.Away) }),
	}

	for _, m := range []struct {
		name, help string
		value      func(*actors.TrackerCounts) int64
	}{
		{"admitted", "Messages taken up.", func(t *actors.TrackerCounts) int64 { return t.Admitted }},
		{"completed", "Messages of which something reached a sink.", func(t *actors.TrackerCounts) int64 { return t.Completed }},
		{"filtered", "Finished messages of which no sink got any.", func(t *actors.TrackerCounts) int64 { return t.Filtered }},
		{"repeated", "Messages taken up that were delivered before.", func(t *actors.TrackerCounts) int64 { return t.Repeated }},
		{"sent_back", "Messages handed back to the broker.", func(t *actors.TrackerCounts) int64 { return t.SentBack }},
		{"dead_lettered", "Messages in the dead letters.", func(t *actors.TrackerCounts) int64 { return t.DeadLettered }},
		{"refused", "Refused tries to hand back a message.", func(t *actors.TrackerCounts) int64 { return t.Refused }},
		{"dropped", "Failed messages of a broadcasting job.", func(t *actors.TrackerCounts) int64 { return t.Dropped }},
	} {
		c.job = append(c.job, describe("messages_"+m.name+"_total", m.help, counter, ofJob,
			func(s *actors.Snapshot) float64 { return float64(m.value(&s.Counts)) }))
	}

	c.job = append(c.job,
		describe("commits_total", "Checkpoints stored.", counter, ofJob,
			func(s *actors.Snapshot) float64 { return float64(s.Counts.Commits) }),
		describe("commits_failed_total", "Checkpoints that could not be stored.", counter, ofJob,
			func(s *actors.Snapshot) float64 { return float64(s.Counts.CommitsFailed) }))

	c.queue = queueMetrics(ofQueue)
	c.chans = channelMetrics(ofChannel)

	return c
}

func queueMetrics(labels []string) []metric[*actors.QueueStatus] {
	var metrics []metric[*actors.QueueStatus]

	for _, m := range []struct {
		name, help string
		value      func(*actors.QueueStatus) int64
	}{
		{"committed_offset", "The committed offset.", func(q *actors.QueueStatus) int64 { return int64(q.Committed) }},
		{"end_offset", "The broker's end of the queue.", func(q *actors.QueueStatus) int64 { return int64(q.End) }},
		{"lag", "Messages that are not committed.", (*actors.QueueStatus).Lag},
		{"in_flight", "Messages taken up and not finished.", func(q *actors.QueueStatus) int64 { return int64(q.InFlight) }},
		{"in_flight_bytes", "Their size.", func(q *actors.QueueStatus) int64 { return q.Bytes }},
		{"finished_above", "Finished messages behind an earlier one.", func(q *actors.QueueStatus) int64 { return q.Above }},
	} {
		metrics = append(metrics, describe("queue_"+m.name, m.help, prometheus.GaugeValue, labels,
			func(q *actors.QueueStatus) float64 { return float64(m.value(q)) }))
	}

	return metrics
}

func channelMetrics(labels []string) []metric[*actors.ChannelStatus] {
	metrics := []metric[*actors.ChannelStatus]{
		describe("channel_waiting", "Messages that wait for a lane.", prometheus.GaugeValue, labels,
			func(c *actors.ChannelStatus) float64 { return float64(c.Waiting) }),
		describe("channel_lanes", "Lanes.", prometheus.GaugeValue, labels,
			func(c *actors.ChannelStatus) float64 { return float64(len(c.Lanes)) }),
		describe("channel_breaker_open", "1 while the channel pauses because nearly everything fails at a stage.",
			prometheus.GaugeValue, labels, func(c *actors.ChannelStatus) float64 {
				if c.Breaker != nil {
					return 1
				}

				return 0
			}),
		describe("channel_breaker_opened_total", "How often the channel has paused for that.", prometheus.CounterValue, labels,
			func(c *actors.ChannelStatus) float64 { return float64(c.Opened) }),
	}

	for _, m := range []struct {
		name, help string
		value      func(*actors.LaneCounts) int64
	}{
		{"taken", "Messages taken up by lanes, retries included.", func(c *actors.LaneCounts) int64 { return c.Taken }},
		{"written", "Messages that the sink accepted.", func(c *actors.LaneCounts) int64 { return c.Written }},
		{"failed", "Failures.", func(c *actors.LaneCounts) int64 { return c.Failed }},
		{"retried", "Retries in place.", func(c *actors.LaneCounts) int64 { return c.Retried }},
		{"panics", "Panics of stages and sinks.", func(c *actors.LaneCounts) int64 { return c.Panics }},
		{"timeouts", "Calls that ran past their deadline.", func(c *actors.LaneCounts) int64 { return c.Timeouts }},
	} {
		metrics = append(metrics, describe("channel_"+m.name+"_total", m.help, prometheus.CounterValue, labels,
			func(c *actors.ChannelStatus) float64 { return float64(m.value(&c.Counts)) }))
	}

	return metrics
}

// Describe says nothing, since which metrics there are depends on the jobs.
func (c *collector) Describe(chan<- *prometheus.Desc) {}

// Collect asks the jobs. One that does not answer in time has no metrics.
func (c *collector) Collect(out chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), probeTime)
	defer cancel()

	for _, job := range c.jobs.All() {
		s, err := snapshot(ctx, job)
		if err != nil {
			continue
		}

		send(out, c.job, s, s.Job)

		for i := range s.Queues {
			q := &s.Queues[i]
			send(out, c.queue, q, s.Job, q.Queue.String())

			if cause, _ := causeOf(q, s.At); cause != Moves && cause != NoMessages {
				out <- prometheus.MustNewConstMetric(c.stands, prometheus.GaugeValue, 1, s.Job, q.Queue.String(), string(cause))
			}
		}

		s.AddCounts()

		for i := range s.Channels {
			send(out, c.chans, &s.Channels[i], s.Job, s.Channels[i].Name)
			c.sendPlugins(out, s.Job, &s.Channels[i])
		}
	}
}

// sendPlugins sends what plugins have counted. A name that is no text, which a plugin of your own may give, is left out.
func (c *collector) sendPlugins(out chan<- prometheus.Metric, job string, ch *actors.ChannelStatus) {
	for _, p := range ch.Plugins {
		for name, n := range p.Counts {
			m, err := prometheus.NewConstMetric(c.plugin, prometheus.CounterValue, float64(n), job, ch.Name, p.Stage, name)
			if err == nil {
				out <- m
			}
		}
	}
}

func send[T any](out chan<- prometheus.Metric, metrics []metric[T], of T, labels ...string) {
	for _, m := range metrics {
		out <- prometheus.MustNewConstMetric(m.desc, m.kind, m.value(of), labels...)
	}
}

// metrics serves the metrics in the format of Prometheus.
func (h *handler) metrics() http.HandlerFunc {
	registry := prometheus.NewRegistry()
	registry.MustRegister(newCollector(h.o.Jobs))

	return promhttp.HandlerFor(registry, promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError}).ServeHTTP
}
