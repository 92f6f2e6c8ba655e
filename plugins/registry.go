package plugins

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/millrace/millrace/pipeline"
)

// Registry knows transforms and sinks by name. The zero value is empty and ready for use. It is filled by one goroutine
// through [AddTransform] and [AddSink]; after that, reading it is safe for concurrent use.
type Registry struct {
	transforms map[string]func(options map[string]any) (func() (pipeline.Transform, error), error)
	sinks      map[string]func(options map[string]any) (pipeline.Sink, error)
}

// AddTransform registers a transform plugin. Its options are decoded by [Decode] into an O, whose zero value holds the
// defaults; build makes the instance of one lane of it. Empty and taken names are refused.
func AddTransform[O any](r *Registry, name string, build func(O) (pipeline.Transform, error)) error {
	if err := free(r.transforms, "transform", name); err != nil {
		return err
	}

	if r.transforms == nil {
		r.transforms = make(map[string]func(map[string]any) (func() (pipeline.Transform, error), error))
	}

	r.transforms[name] = func(options map[string]any) (func() (pipeline.Transform, error), error) {
		var o O
		if err := Decode(options, &o); err != nil {
			return nil, err
		}

		return func() (pipeline.Transform, error) { return build(o) }, nil
	}

	return nil
}

// AddSink registers a sink plugin, as [AddTransform] does a transform. What a sink needs beside its options, such as a
// publisher or a logger, is bound by build.
func AddSink[O any](r *Registry, name string, build func(O) (pipeline.Sink, error)) error {
	if err := free(r.sinks, "sink", name); err != nil {
		return err
	}

	if r.sinks == nil {
		r.sinks = make(map[string]func(map[string]any) (pipeline.Sink, error))
	}

	r.sinks[name] = func(options map[string]any) (pipeline.Sink, error) {
		var o O
		if err := Decode(options, &o); err != nil {
			return nil, err
		}

		return build(o)
	}

	return nil
}

func free[T any](taken map[string]T, kind, name string) error {
	if name == "" {
		return fmt.Errorf("plugins: a %s needs a name", kind)
	}

	if _, ok := taken[name]; ok {
		return fmt.Errorf("plugins: there is already a %s %q", kind, name)
	}

	return nil
}

// Stage returns a stage called name that runs the transform plugin with the given options, which are checked now and
// not kept. It fails with an [*UnknownPluginError] or with an [*OptionsError].
func (r *Registry) Stage(name, plugin string, options map[string]any) (pipeline.Stage, error) {
	decode, ok := r.transforms[plugin]
	if !ok {
		return pipeline.Stage{}, unknown(r.transforms, "transform", plugin)
	}

	build, err := decode(options)
	if err != nil {
		return pipeline.Stage{}, fmt.Errorf("plugins: transform %q: %w", plugin, err)
	}

	return pipeline.Stage{Name: name, New: build}, nil
}

// Sink returns a new sink of the plugin with the given options, which are not kept. It fails with an
// [*UnknownPluginError], with an [*OptionsError], or as the plugin does.
func (r *Registry) Sink(plugin string, options map[string]any) (pipeline.Sink, error) {
	build, ok := r.sinks[plugin]
	if !ok {
		return nil, unknown(r.sinks, "sink", plugin)
	}

	sink, err := build(options)
	if err != nil {
		return nil, fmt.Errorf("plugins: sink %q: %w", plugin, err)
	}

	return sink, nil
}

// UnknownPluginError is returned for a name that nothing is registered under.
type UnknownPluginError struct {
	// Kind is transform or sink.
	Kind string
	// Name is the name that was asked for.
	Name string
	// Known are the registered names of that kind, sorted.
	Known []string
}

var _ error = (*UnknownPluginError)(nil)

func unknown[T any](known map[string]T, kind, name string) error {
	return &UnknownPluginError{Kind: kind, Name: name, Known: slices.Sorted(maps.Keys(known))}
}

// Error names the plugin and the one that may have been meant, or all that there are.
func (e *UnknownPluginError) Error() string {
	return fmt.Sprintf("plugins: unknown %s %q; %s", e.Kind, e.Name, proposal(e.Name, e.Known))
}

// proposal completes the sentence about an unknown name.
func proposal(name string, known []string) string {
	if near, ok := nearest(name, known); ok {
		return fmt.Sprintf("did you mean %q?", near)
	}

	if len(known) == 0 {
		return "there are none"
	}

	return "there are: " + strings.Join(known, ", ")
}
