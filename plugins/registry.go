package plugins

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sync"

	"go.uber.org/zap"

	"github.com/millrace/millrace/consumer"
	"github.com/millrace/millrace/pipeline"
)

// Kind is what a plugin is used as.
type Kind string

// The kinds.
const (
	// Transform: a stage of a channel.
	Transform Kind = "transform"
	// Gather: the end of a channel that makes messages of whole batches.
	Gather Kind = "gather"
	// Sink: the end of a channel that takes messages out of the job.
	Sink Kind = "sink"
)

// Env is what a plugin gets from the job that it runs in.
type Env struct {
	// Log is where plugins report what is no error of a message. Builders never get nil; nil given to the registry logs
	// nothing.
	Log *zap.Logger
	// Publisher publishes to topics of the job's broker. Nil where the broker has none.
	Publisher consumer.Publisher
	// Clock is what plugins go by that hold messages up or forget them. Builders never get nil; nil given to the registry is
	// the [RealClock].
	Clock Clock
}

// Validator is what options implement when a mistake can lie between several of them. Validate is called after each option
// has been decoded by itself; it may return an [*OptionsError] to say where the mistake is.
type Validator interface {
	Validate() error
}

// Registry knows plugins by kind and name. The zero value is empty and ready for use. It is filled by one goroutine through
// [AddTransform], [AddGather] and [AddSink]; after that, reading it is safe for concurrent use.
type Registry struct {
	plugins map[Kind]map[string]plugin
}

// plugin is one registered plugin. Options are decoded into a fresh value of type options.
type plugin struct {
	doc     Doc
	options reflect.Type
	// prepare is called once for each use of the plugin, with the decoded options, when the first instance is wanted. What
	// it returns makes the instances, of the type that the kind calls for.
	prepare func(env Env, options any) (build func() (any, error), err error)
}

// AddTransform registers a transform plugin. Its options are decoded by [Decode] into an O; build makes the instance of one
// lane of it, which is used by one goroutine. Empty and taken names and impossible option tags are refused.
func AddTransform[O any](r *Registry, name string, doc Doc, build func(Env, O) (pipeline.Transform, error)) error {
	return add(r, Transform, name, doc, build)
}

// AddStage registers a transform plugin whose lanes have something in common, as [AddTransform] does otherwise. Prepare is
// called once for each stage that uses the plugin, before its first lane starts; what it returns makes the instance of one
// lane, and is called by one goroutine at a time.
func AddStage[O any](
	r *Registry, name string, doc Doc, prepare func(Env, O) (fresh func() (pipeline.Transform, error), err error),
) error {
	return addPrepared(r, Transform, name, doc, prepare)
}

// AddGather registers a plugin that makes messages of batches, as [AddTransform] does.
func AddGather[O any](r *Registry, name string, doc Doc, build func(Env, O) (pipeline.BatchTransform, error)) error {
	return add(r, Gather, name, doc, build)
}

// AddSink registers a sink plugin, as [AddTransform] does a transform. All lanes of a channel share one sink, so it must be
// safe for concurrent use.
func AddSink[O any](r *Registry, name string, doc Doc, build func(Env, O) (pipeline.Sink, error)) error {
	return add(r, Sink, name, doc, build)
}

func add[O, P any](r *Registry, kind Kind, name string, doc Doc, build func(Env, O) (P, error)) error {
	return addPrepared(r, kind, name, doc, func(env Env, options O) (func() (P, error), error) {
		return func() (P, error) { return build(env, options) }, nil
	})
}

func addPrepared[O, P any](
	r *Registry, kind Kind, name string, doc Doc, prepare func(Env, O) (func() (P, error), error),
) error {
	if name == "" {
		return fmt.Errorf("plugins: a %s needs a name", kind)
	}

	if _, ok := r.plugins[kind][name]; ok {
		return fmt.Errorf("plugins: there is already a %s %q", kind, name)
	}

	options := reflect.TypeFor[O]()
	if err := checkTags(options); err != nil {
		return fmt.Errorf("plugins: %s %q: %w", kind, name, err)
	}

	if r.plugins == nil {
		r.plugins = make(map[Kind]map[string]plugin)
	}

	if r.plugins[kind] == nil {
		r.plugins[kind] = make(map[string]plugin)
	}

	r.plugins[kind][name] = plugin{doc: doc, options: options, prepare: func(env Env, o any) (func() (any, error), error) {
		options, _ := o.(O)

		build, err := prepare(env, options)
		if err != nil {
			return nil, err
		}

		return func() (any, error) { return build() }, nil
	}}

	return nil
}

// Stage returns a stage called name that runs the transform plugin. The options are checked now and not kept: nil for none,
// a map of names, or the plugin's main option alone. It fails with an [*UnknownPluginError] or with an [*OptionsError].
func (r *Registry) Stage(name, plugin string, options any, env Env) (pipeline.Stage, error) {
	build, err := r.prepare(Transform, plugin, options, env)
	if err != nil {
		return pipeline.Stage{}, err
	}

	return pipeline.Stage{Name: name, New: func() (pipeline.Transform, error) {
		return made[pipeline.Transform](build)
	}}, nil
}

// Gather returns a gather stage called name, as [Registry.Stage] does a stage.
func (r *Registry) Gather(name, plugin string, options any, env Env) (*pipeline.GatherStage, error) {
	build, err := r.prepare(Gather, plugin, options, env)
	if err != nil {
		return nil, err
	}

	return &pipeline.GatherStage{Name: name, New: func() (pipeline.BatchTransform, error) {
		return made[pipeline.BatchTransform](build)
	}}, nil
}

// Sink returns a new sink of the plugin, with options as [Registry.Stage] takes them. It fails with an
// [*UnknownPluginError], with an [*OptionsError], or as the plugin does.
func (r *Registry) Sink(plugin string, options any, env Env) (pipeline.Sink, error) {
	build, err := r.prepare(Sink, plugin, options, env)
	if err != nil {
		return nil, err
	}

	return made[pipeline.Sink](build)
}

func made[P any](build func() (any, error)) (P, error) {
	v, err := build()
	p, _ := v.(P)

	return p, err
}

// Check says what is wrong with the name or the options of a plugin, as an [*UnknownPluginError] or an [*OptionsError],
// without making one.
func (r *Registry) Check(kind Kind, plugin string, options any) error {
	_, err := r.prepare(kind, plugin, options, Env{})

	return err
}

// prepare decodes the options once and returns what builds an instance with them.
func (r *Registry) prepare(kind Kind, name string, options any, env Env) (func() (any, error), error) {
	p, ok := r.plugins[kind][name]
	if !ok {
		return nil, r.unknown(kind, name)
	}

	into := reflect.New(p.options)
	if err := Decode(options, into.Interface()); err != nil {
		return nil, fmt.Errorf("plugins: %s %q: %w", kind, name, err)
	}

	if env.Log == nil {
		env.Log = zap.NewNop()
	}

	if env.Clock == nil {
		env.Clock = RealClock{}
	}

	var (
		mu    sync.Mutex // lanes start side by side
		build func() (any, error)
	)

	return func() (any, error) {
		mu.Lock()
		defer mu.Unlock()

		if build == nil {
			b, err := p.prepare(env, into.Elem().Interface())
			if err != nil {
				return nil, fmt.Errorf("plugins: %s %q: %w", kind, name, err)
			}

			build = b
		}

		v, err := build()
		if err != nil {
			return nil, fmt.Errorf("plugins: %s %q: %w", kind, name, err)
		}

		return v, nil
	}, nil
}

// UnknownPluginError is returned for a name that nothing is registered under.
type UnknownPluginError struct {
	// Kind is what was asked for.
	Kind Kind
	// Name is the name that was asked for.
	Name string
	// Known are the registered names of that kind, sorted.
	Known []string
	// Is is the kind that the name is registered as; empty when it is none.
	Is Kind
}

var _ error = (*UnknownPluginError)(nil)

func (r *Registry) unknown(kind Kind, name string) error {
	e := &UnknownPluginError{Kind: kind, Name: name, Known: slices.Sorted(maps.Keys(r.plugins[kind]))}

	for _, other := range []Kind{Transform, Gather, Sink} {
		if _, ok := r.plugins[other][name]; ok {
			e.Is = other
		}
	}

	return e
}

// Error names the plugin and the one that may have been meant, or all that there are.
func (e *UnknownPluginError) Error() string { return "plugins: " + e.Problem() }

// Problem is the error without its prefix, for a message that says itself where it is from.
func (e *UnknownPluginError) Problem() string {
	if e.Is != "" {
		return fmt.Sprintf("%q is a %s, not a %s", e.Name, e.Is, e.Kind)
	}

	return fmt.Sprintf("unknown %s %q; %s", e.Kind, e.Name, pipeline.Suggest(e.Name, e.Known))
}
