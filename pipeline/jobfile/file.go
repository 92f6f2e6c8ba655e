package jobfile

import (
	"slices"

	"github.com/millrace/millrace/plugins"
)

// File is a job file without mistakes.
type File struct {
	// Name is the name that was given to [Parse].
	Name string
	// Broker is what the jobs of the file run on.
	Broker Broker
	// Jobs are the documents of the file, at least one.
	Jobs []*Job
	// Redactor takes out of any text the secrets that variables have put into the file: all of ${file:…}, and ${NAME} where
	// a word of the name says so, such as KEY, PASSWORD, TOKEN or DSN.
	Redactor Redactor
}

// Parse reads a job file. The name is for messages only. Each document of the file is a job; the first one names the broker
// of them all. Plugins are those of the registry; their options are checked, but nothing is opened.
//
// It fails with an [*Error]: everything that is wrong with the file. A message never shows what a variable has put into the
// file, only the variable.
func Parse(name string, src []byte, registry *plugins.Registry, variables Variables) (*File, error) {
	d := &decoder{reader: &reader{file: name, variables: variables, unset: make(map[Place]bool)}, registry: registry}
	f := &File{Name: name}

	docs := d.read(src)
	if len(docs) == 0 && len(d.mistakes) == 0 {
		d.mistakef(Place{Line: 1, Column: 1}, "the file is empty; `millrace init` writes one to begin with")
	}

	d.broker(f, docs)

	for _, doc := range docs {
		job := d.job(doc)

		if i := slices.IndexFunc(f.Jobs, func(j *Job) bool { return j.Name == job.Name && j.Name != "" }); i >= 0 {
			d.mistakef(job.at[keyName], "job %q is on line %d already; give each job a name of its own",
				job.Name, f.Jobs[i].Line)
		}

		f.Jobs = append(f.Jobs, job)
	}

	if f.Broker.RocketMQ != nil {
		d.fitRocketMQ(f, docs[0].get("broker").get(typeRocketMQ))
	}

	f.Redactor = NewRedactor(d.secrets)

	if len(d.mistakes) == 0 {
		return f, nil
	}

	found := d.mistakes.without(d.unset).sorted()
	for i := range found {
		found[i].Problem = f.Redactor.Redact(found[i].Problem)
	}

	return nil, &Error{Mistakes: found}
}
