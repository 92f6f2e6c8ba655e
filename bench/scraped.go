package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/millrace/millrace/actors"
	"github.com/millrace/millrace/actors/admin"
	"github.com/millrace/millrace/consumer/consumertest"
	"github.com/millrace/millrace/pipeline"
)

// minScraped is the promised share of the rate that is left to a job which is scraped and looked at.
const minScraped = 0.95

// longer is how many times as many messages a round has as one of identity: it must last for some scrapes.
const longer = 20

// scraped runs identity stages with and without a scraper of the metrics and an open page, each of which asks once a second.
func scraped(o options) ([]line, error) {
	messages := longer * o.messages

	with, without, ratio, err := turns(o.rounds,
		func() (float64, error) {
			return served(messages, []string{"/metrics", "/api/v1/status", "/api/v1/why"})
		},
		func() (float64, error) { return served(messages, nil) })
	if err != nil {
		return nil, err
	}

	return []line{
		newLine("scraped", "identity, a scraper and an open page", with/million, "M/s"),
		newLine("scraped", "the same, nobody asks", without/million, "M/s"),
		newLine("scraped", "asked / not asked", ratio, "").atLeast(minScraped),
	}, nil
}

// served returns messages a second of a job whose endpoint is asked for some paths at once and then each second. The page asks
// why only where something may stand, and every two seconds; here it is asked each time.
func served(messages int, paths []string) (rate float64, err error) {
	var jobs admin.Jobs

	server, err := admin.Serve(admin.Options{Address: "127.0.0.1:0", Jobs: &jobs})
	if err != nil {
		return 0, fmt.Errorf("serve: %w", err)
	}

	defer func() { err = errors.Join(err, server.Close()) }()

	sink := consumertest.NewCountingSink(int64(messages))
	start := time.Now()

	r, err := actors.Start(newJob(sink), consumertest.NewTap("bench", pipeline.Offset(messages)), actors.Options{})
	if err != nil {
		return 0, fmt.Errorf("start: %w", err)
	}

	jobs.Add(r)

	var (
		failed error
		askers sync.WaitGroup
	)

	askers.Go(func() { failed = keepAsking("http://"+server.Address(), paths, sink.Full()) })

	<-sink.Full()

	took := time.Since(start)

	askers.Wait()

	return float64(messages) / took.Seconds(), errors.Join(failed, r.Drain(0).Err)
}

// keepAsking asks for paths until the end.
func keepAsking(base string, paths []string, end <-chan struct{}) error {
	transport := new(http.Transport)
	defer transport.CloseIdleConnections()

	client := http.Client{Transport: transport}

	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()

	for {
		for _, path := range paths {
			if err := fetch(&client, base+path); err != nil {
				return err
			}
		}

		select {
		case <-end:
			return nil
		case <-ticker.C:
		}
	}
}

// fetch reads an answer and forgets it.
func fetch(client *http.Client, url string) (err error) {
	request, err := http.NewRequestWithContext(context.Background(), http.MethodGet, url, http.NoBody)
	if err != nil {
		return fmt.Errorf("ask: %w", err)
	}

	response, err := client.Do(request)
	if err != nil {
		return fmt.Errorf("ask: %w", err)
	}

	defer func() { err = errors.Join(err, response.Body.Close()) }()

	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		return fmt.Errorf("ask: %w", err)
	}

	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("ask: %s: %w", response.Status, errAnswer)
	}

	return nil
}

var errAnswer = errors.New("the endpoint refuses to answer")
