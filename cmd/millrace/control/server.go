package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/millrace/millrace/actors"
	"github.com/millrace/millrace/actors/admin"
	"github.com/millrace/millrace/consumer/embedded"
	"github.com/millrace/millrace/pipeline"
)

// maxRequest bounds what is read of a request; a published batch is cut to fit by the client.
const maxRequest = 64 << 20

// Job is a job that runs on a served broker.
type Job struct {
	*actors.Running

	// Group is the job's consumer group.
	Group string
	// Redact takes secrets out of what is told; nil changes nothing.
	Redact func(string) string
}

// Server serves an open broker, and the jobs that run on it.
type Server struct {
	broker *embedded.Broker
	dead   *admin.DeadLetters
	served *admin.Server
	// life ends with the server: what reads a topic stops.
	cancel context.CancelFunc

	mu   sync.Mutex
	jobs []Job // guarded by mu
	// asked are the same jobs, as they are asked.
	asked admin.Jobs
	// readers are the numbers of those who read a topic now; guarded by mu.
	readers map[int]bool
}

// Serve serves a broker from now on, until Close. The broker is the caller's, and closed after the server.
func Serve(dir string, broker *embedded.Broker) (*Server, error) {
	path, err := socket(dir)
	if err != nil {
		return nil, err
	}

	// Who has the broker open is the only one to serve it, so what lies there is of a process that was killed.
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("control: %w", err)
	}

	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("control: %w", err)
	}

	life, cancel := context.WithCancel(context.Background())

	listener, err := new(net.ListenConfig).Listen(life, "unix", path)
	if err != nil {
		cancel()

		return nil, fmt.Errorf("control: %w", err)
	}

	if err := os.Chmod(path, 0o600); err != nil {
		cancel()

		return nil, errors.Join(fmt.Errorf("control: %w", err), listener.Close())
	}

	s := &Server{
		broker: broker, dead: deadLetters(broker), cancel: cancel, readers: make(map[int]bool),
	}
	s.served = admin.Start(listener, &http.Server{
		Handler:           s.routes(),
		ReadHeaderTimeout: 10 * time.Second,
		BaseContext:       func(net.Listener) context.Context { return life },
	})

	return s, nil
}

// Run tells the server which jobs run on the broker.
func (s *Server) Run(jobs ...Job) {
	s.mu.Lock()
	defer s.mu.Unlock()

	s.jobs = append(s.jobs, jobs...)

	for _, job := range jobs {
		s.asked.Add(job.Running)
	}
}

// Close stops serving and waits until no request is answered any more.
func (s *Server) Close() error {
	s.cancel()

	return s.served.Close() //nolint:wrapcheck // its server is of the same kind
}

func (s *Server) routes() http.Handler {
	mux := http.NewServeMux()

	mux.HandleFunc("GET /broker", answer(func(r *http.Request) (any, error) { return s.broker.Describe(r.Context()) }))
	mux.Handle("/api/v1/", admin.NewHandler(admin.Options{
		Private: true, Jobs: &s.asked, DeadLetters: s.dead, Redact: s.redact,
	}))
	mux.HandleFunc("POST /topics", answer(s.createTopic))
	mux.HandleFunc("POST /messages", answer(s.publish))
	mux.HandleFunc("POST /offsets", answer(s.reset))
	mux.HandleFunc("GET /messages", s.read)

	return mux
}

// answer makes a handler of what returns a value or an error.
func answer(ask func(*http.Request) (any, error)) http.HandlerFunc {
	serve := admin.Answer(nil, ask)

	return func(w http.ResponseWriter, r *http.Request) {
		r.Body = http.MaxBytesReader(w, r.Body, maxRequest)

		serve(w, r)
	}
}

// running returns the jobs.
func (s *Server) running() []Job {
	s.mu.Lock()
	defer s.mu.Unlock()

	return slices.Clone(s.jobs)
}

// redact takes the secrets of all jobs out of a text.
func (s *Server) redact(text string) string {
	for _, job := range s.running() {
		if job.Redact != nil {
			text = job.Redact(text)
		}
	}

	return text
}

func (s *Server) createTopic(r *http.Request) (any, error) {
	var topic topicRequest
	if err := json.NewDecoder(r.Body).Decode(&topic); err != nil {
		return nil, fmt.Errorf("control: %w", err)
	}

	return nil, s.broker.CreateTopic(r.Context(), topic.Name, topic.Queues) //nolint:wrapcheck // the client says it in its words
}

func (s *Server) publish(r *http.Request) (any, error) {
	var messages []*pipeline.Message

	decoder := json.NewDecoder(r.Body)

	for {
		var m Message

		err := decoder.Decode(&m)
		if errors.Is(err, io.EOF) {
			break
		}

		if err != nil {
			return nil, fmt.Errorf("control: %w", err)
		}

		messages = append(messages, m.Pipeline())
	}

	err := s.broker.Publish(r.Context(), r.URL.Query().Get("topic"), messages)

	return nil, err //nolint:wrapcheck // the client says it in its words
}

// read streams a topic as lines of JSON. A failure on the way is a last line with an error.
func (s *Server) read(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()

	from, err := ParsePosition(query.Get("from"))
	if err != nil {
		answer(func(*http.Request) (any, error) { return nil, err })(w, r)

		return
	}

	follow, _ := strconv.ParseBool(query.Get("follow"))

	number := s.takeNumber()
	defer s.giveNumber(number)

	w.Header().Set("Content-Type", "application/jsonl")

	out := &stream{encoder: json.NewEncoder(w), flush: http.NewResponseController(w).Flush}

	what := Read{Topic: query.Get("topic"), From: from, Follow: follow}

	err = s.reader(number).Read(r.Context(), what, out.write)
	if err != nil && r.Context().Err() == nil {
		_ = out.encoder.Encode(line{Error: err.Error()}) //nolint:errchkjson // there is nobody left to be told
	}
}

// reader returns the reader with a number.
func (s *Server) reader(number int) Reader {
	return Reader{Broker: s.broker, Group: readersGroup, Instance: strconv.Itoa(number)}
}

// takeNumber returns the lowest number that no other reader has, so that readers leave few names behind.
func (s *Server) takeNumber() int {
	s.mu.Lock()
	defer s.mu.Unlock()

	number := 1
	for s.readers[number] {
		number++
	}

	s.readers[number] = true

	return number
}

func (s *Server) giveNumber(number int) {
	s.mu.Lock()
	defer s.mu.Unlock()

	delete(s.readers, number)
}
