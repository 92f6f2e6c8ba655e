package actors

// plantedBug is a mistake in the code of the runtime, which the harness must notice.
type plantedBug struct {
	// name says what goes wrong; rules are those of which the harness must find one broken.
	name  string
	rules []string
	// file holds the line was, once; instead of it stands now. Inside now, PLANTED is true where this bug was chosen.
	file, was, now string
}

// plantedBugs are real bugs, one or more for each rule, and each in the place where somebody could make it.
func plantedBugs() []plantedBug {
	return append(plantedInTracker(), plantedElsewhere()...)
}

func plantedInTracker() []plantedBug {
	return []plantedBug{
		{
			name: "commit above the lowest unfinished", rules: []string{"I2"}, file: "commit.go",
			was: "	cp := q.window.Checkpoint()\n	q.dirty = false\n",
			now: "	cp := q.window.Checkpoint()\n	q.dirty = false\n	if PLANTED { cp = consumer.Checkpoint{Next: q.window.Next()} }\n",
		},
		{
			name: "commit that goes back", rules: []string{"I3"}, file: "commit.go",
			was: "	q.busy = true\n	ctx, member, lease",
			now: "	if PLANTED && cp.Next > 1 { cp = consumer.Checkpoint{Next: cp.Next / 2} }\n	q.busy = true\n	ctx, member, lease",
		},
		{
			name: "commit after the revoke", rules: []string{"I4"}, file: "queues.go",
			was: "		if err := e.member.Release(ctx, l); err != nil {",
			now: "		if PLANTED { _ = e.member.Commit(ctx, l, consumer.Checkpoint{}) }\n" +
				"		if err := e.member.Release(ctx, l); err != nil {",
		},
		{
			name: "lost completion", rules: []string{"I5"}, file: "tracker.go",
			was: "		t.done(run.block, int(run.from), int(run.to))",
			now: "		if PLANTED && run.block.records[run.from].offset%8 == 3 { continue }\n" +
				"		t.done(run.block, int(run.from), int(run.to))",
		},
		{
			name: "clean end without the last commit", rules: []string{"I6"}, file: "commit.go",
			was: "		c.final = true\n		c.tries++\n",
			now: "		if PLANTED { t.finishClosing(q, nil); return }\n		c.final = true\n		c.tries++\n",
		},
		{
			name: "double ownership", rules: []string{"double ownership"}, file: "queues.go",
			was: "			e.revoke(q)\n",
			now: "			e.revoke(q)\n			if PLANTED { delete(e.queues, queue) }\n",
		},
		{
			name: "leaked credit", rules: []string{"I5", "I12"}, file: "tracker.go",
			was: "&refund{messages: r.Messages, bytes: r.Bytes, low: r.Min})",
			now: "&refund{messages: r.Messages - plantedOne(PLANTED), bytes: r.Bytes, low: r.Min})",
		},
		{
			name: "missed deadline", rules: []string{"deadline"}, file: "deadline.go",
			was: "now-w.since >= int64(l.ch.spec.Timeout) &&",
			now: "now-w.since >= int64(l.ch.spec.Timeout)*(1+int64(plantedOne(PLANTED)*9)) &&",
		},
		{
			name: "double dead letter", rules: []string{"I8"}, file: "returns.go",
			was: "			err = member.DeadLetter(ctx, m, cause)\n",
			now: "			err = member.DeadLetter(ctx, m, cause)\n" +
				"			if PLANTED && err == nil { err = member.DeadLetter(ctx, m, cause) }\n",
		},
		{
			name: "dead letter that nobody parks", rules: []string{"I1"}, file: "returns.go",
			was: "			err = member.DeadLetter(ctx, m, cause)\n",
			now: "			if !PLANTED { err = member.DeadLetter(ctx, m, cause) }\n",
		},
		{
			name: "one delivery too many", rules: []string{"I8"}, file: "returns.go",
			was: "outcome: d.tracker.plan.Job.Retry.Decide(f.attempts, f.err)}",
			now: "outcome: d.tracker.plan.Job.Retry.Decide(f.attempts-plantedOne(PLANTED), f.err)}",
		},
		{
			name: "unbounded retry set", rules: []string{"I9"}, file: "returns.go",
			was: "		r.tries++\n		r.err = m.err\n",
			now: "		r.tries++\n		r.err = m.err\n" +
				"		if PLANTED { q.refund.Add(1, r.t.block.bytes(int(r.t.index), int(r.t.index)+1), q.window.Min()); t.giveBack(q) }\n",
		},
		{
			name: "wait without a name", rules: []string{"I12"}, file: "locate.go",
			was: "	for _, w := range t.lanes {\n		if t.locateInLane(b, w, target) {\n",
			now: "	if PLANTED { return b }\n	for _, w := range t.lanes {\n		if t.locateInLane(b, w, target) {\n",
		},
	}
}

func plantedElsewhere() []plantedBug {
	return []plantedBug{
		{
			name: "span that is not looked at", rules: []string{"I9"}, file: "../consumer/credit.go",
			was: " && int64(o-c.low) < c.limits.Span",
			now: " && (PLANTED || int64(o-c.low) < c.limits.Span)",
		},
		{
			name: "order break", rules: []string{"I7"}, file: "laneturn.go",
			was: "	if len(l.parking.holds) == 0 {\n		return true\n	}\n\n	l.mu.Lock()",
			now: "	if len(l.parking.holds) == 0 || PLANTED {\n		return true\n	}\n\n	l.mu.Lock()",
		},
		{
			name: "late result accepted", rules: []string{"books", "I2", "I11"}, file: "deadline.go",
			was: "l.word.fence(seq) {",
			now: "(PLANTED || l.word.fence(seq)) {",
		},
		{
			name: "message runs twice at a time", rules: []string{"I11"}, file: "queues.go",
			was: "	if e.restless[l.Queue] > 0 {\n",
			now: "	if e.restless[l.Queue] > 0 && !PLANTED {\n",
		},
		{
			name: "checkpoint newer than the sink", rules: []string{"I2"}, file: "laneend.go",
			was: "	l.outs = l.outs[:0]\n	call := l.call.Load()\n	l.begin(now)\n",
			now: "	l.outs = l.outs[:0]\n	call := l.call.Load()\n	l.begin(now)\n" +
				"	if PLANTED && l.gather == nil { batch := slices.Clone(l.batch); l.settleBatch(n, nil); l.tell(); " +
				"_ = pipeline.Guard(\"\", \"\", func() error { return l.ch.spec.Sink.Write(call, batch) }); return true }\n",
		},
		{
			name: "cancelled taken for failed", rules: []string{"cancelled is not failed"}, file: "report.go",
			was: "	t.fail(&failure{cancelled: true})\n	r.finish(t, false)\n",
			now: "	t.fail(&failure{cancelled: !PLANTED, attempts: t.record().delivery, err: pipeline.AsStageError(\"\", \"\", errStopping)})\n" +
				"	r.finish(t, false)\n",
		},
		{
			name: "dead letter while the breaker is open", rules: []string{"breaker"}, file: "breaker.go",
			was: "	if !b.open() || pipeline.IsRejected(err) {",
			now: "	if PLANTED || !b.open() || pipeline.IsRejected(err) {",
		},
		{
			name: "breaker that does not open", rules: []string{"breaker"}, file: "breaker.go",
			was: "count > 0 && b.spec.Opens(failed, o.seen) {",
			now: "count > 0 && !PLANTED && b.spec.Opens(failed, o.seen) {",
		},
		{
			name: "mailbox that grows", rules: []string{"I10"}, file: "channel.go",
			was: "		c.root.Send(l.pid, wake{})",
			now: "		for range 1 + 999*plantedOne(PLANTED) { c.root.Send(l.pid, wake{}) }",
		},
	}
}
