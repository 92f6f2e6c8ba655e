package main

func durable(options) ([]line, error) { return nil, nil }
func latency(options) ([]line, error) { return nil, nil }
func idle(options) ([]line, error)    { return nil, nil }
