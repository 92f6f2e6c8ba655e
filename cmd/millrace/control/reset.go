package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/millrace/millrace/actors"
	"github.com/millrace/millrace/consumer"
	"github.com/millrace/millrace/consumer/embedded"
	"github.com/millrace/millrace/pipeline"
)

// resetRequest is a [Reset] on the wire.
type resetRequest struct {
	Group string `json:"group"`
	Topic string `json:"topic"`
	Queue int    `json:"queue"`
	To    string `json:"to"`
}

// reset moves a group's offsets: through the job that works for the group here, or as a member of the group.
func (s *Server) reset(r *http.Request) (any, error) {
	var request resetRequest
	if err := json.NewDecoder(r.Body).Decode(&request); err != nil {
		return nil, fmt.Errorf("control: %w", err)
	}

	to, err := ParsePosition(request.To)
	if err != nil {
		return nil, err
	}

	reset := Reset{Group: request.Group, Topic: request.Topic, Queue: request.Queue, To: to}

	before, busy, err := s.standing(r.Context(), reset)
	if err != nil {
		return nil, err
	}

	move := s.commit
	if busy {
		move = s.seek
	}

	moved, err := move(r.Context(), reset)
	for i := range moved {
		moved[i].From, moved[i].Stored = before[moved[i].Queue], false
		if _, ok := before[moved[i].Queue]; ok {
			moved[i].Stored = true
		}
	}

	return moved, err
}

// standing returns the offsets that the group has stored, and whether it has members. An unknown group is an error.
func (s *Server) standing(ctx context.Context, r Reset) (map[string]pipeline.Offset, bool, error) {
	d, err := s.broker.Describe(ctx)
	if err != nil {
		return nil, false, err //nolint:wrapcheck // the client says where it comes from
	}

	i := slices.IndexFunc(d.Groups, func(g embedded.GroupInfo) bool { return g.Name == r.Group })
	if i < 0 {
		names := make([]string, 0, len(d.Groups))
		for _, g := range d.Groups {
			names = append(names, g.Name)
		}

		return nil, false, fmt.Errorf("no group %q; %s", r.Group, pipeline.Suggest(r.Group, names))
	}

	t := slices.IndexFunc(d.Topics, func(t embedded.TopicInfo) bool { return t.Name == r.Topic })
	if t >= 0 && r.Queue >= len(d.Topics[t].Queues) {
		return nil, false, fmt.Errorf("no queue %d in topic %q; it has the queues 0 to %d",
			r.Queue, r.Topic, len(d.Topics[t].Queues)-1)
	}

	before := make(map[string]pipeline.Offset)
	for _, o := range d.Groups[i].Offsets {
		before[o.Queue.String()] = o.Next
	}

	return before, len(d.Groups[i].Members) > 0, nil
}

// commit stores the offsets as the group's only member.
func (s *Server) commit(ctx context.Context, r Reset) ([]Moved, error) {
	return Commit(ctx, s.broker, r)
}

// Commit stores the offsets of a reset at any broker, as a member of a group that has no other, and returns those it has stored.
func Commit(ctx context.Context, broker consumer.Broker, r Reset) (moved []Moved, err error) {
	member, err := broker.Join(ctx, consumer.Subscription{Group: r.Group, Topics: []string{r.Topic}})
	if err != nil {
		return nil, err //nolint:wrapcheck // who calls says where it comes from
	}

	defer func() { err = errors.Join(err, member.Leave(context.WithoutCancel(ctx))) }()

	var assignment consumer.Assignment

	for !slices.ContainsFunc(assignment.Leases, func(l consumer.Lease) bool { return l.Queue.Topic == r.Topic }) {
		if assignment, err = member.Assigned(ctx, assignment.Generation); err != nil {
			return nil, err //nolint:wrapcheck // as above
		}
	}

	for _, lease := range assignment.Leases {
		if !r.Means(lease.Queue) {
			continue
		}

		offset, err := find(ctx, member, lease.Queue, r.To)
		if err != nil {
			return moved, err
		}

		if err := member.Commit(ctx, lease, consumer.Checkpoint{Next: offset}); err != nil {
			return moved, err //nolint:wrapcheck // as above
		}

		moved = append(moved, Moved{Queue: lease.Queue.String(), To: offset})
	}

	return moved, nil
}

// seek asks the running jobs to go on elsewhere. What the position means is found out as a reader first.
func (s *Server) seek(ctx context.Context, r Reset) ([]Moved, error) {
	offsets, err := s.offsets(ctx, r)
	if err != nil {
		return nil, err
	}

	var moved []Moved

	for _, job := range s.running() {
		if job.Group != r.Group {
			continue
		}

		snapshot, err := job.Snapshot(ctx)
		if errors.Is(err, actors.ErrStopped) {
			continue
		}

		if err != nil {
			return moved, err //nolint:wrapcheck // the client says where it comes from
		}

		for i := range snapshot.Queues {
			q := snapshot.Queues[i].Queue
			if !r.Means(q) {
				continue
			}

			if err := job.Seek(ctx, q, offsets[q]); err != nil {
				return moved, err //nolint:wrapcheck // as above
			}

			moved = append(moved, Moved{Queue: q.String(), To: offsets[q]})
		}
	}

	if len(moved) == 0 {
		return nil, fmt.Errorf("group %q is at work, but not on %q here; stop it first", r.Group, r.Topic)
	}

	return moved, nil
}

// offsets returns what a position means in the queues of a topic.
func (s *Server) offsets(ctx context.Context, r Reset) (map[pipeline.Queue]pipeline.Offset, error) {
	number := s.takeNumber()
	defer s.giveNumber(number)

	return s.reader(number).Offsets(ctx, r)
}
