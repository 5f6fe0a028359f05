package processes

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"
)

// inflict waits for a fault's time, injects the fault, and ends it.
func (r *running) inflict(ctx context.Context, f *fault) {
	if slices.Contains(privileged, f.Kind) && !rooted() {
		r.event("omitted, because it requires root: %s", f)
		return
	}
	r.reach(ctx, f.After)
	if rest(ctx, f.At) != nil {
		return
	}
	switch f.Kind {
	case killAll, newAll, flip:
		r.inflictAll(ctx, f)
		return
	case isolate, cutOne, cutBoth:
		r.cut(ctx, f, r.resolve(f.On))
		return
	}
	p := r.process(r.resolve(f.On))
	p.change.Lock()
	defer p.change.Unlock()
	if ctx.Err() != nil {
		return
	}
	switch f.Kind {
	case kill, term, upgrade, empty:
		r.replace(ctx, f, p)
	case pause:
		if !p.halt(true) {
			return
		}
		r.event("%s pauses for %v", p.name, f.For)
		_ = rest(ctx, f.For)
		p.halt(false)
	case full, frozen:
		r.spoil(ctx, f, p)
	case vanish:
		r.event("a fault deletes the records of %s", p.name)
		r.failed(p.lose())
	}
}

// reach waits for an event of the first plan, but at most a minute: the event may never happen.
func (r *running) reach(ctx context.Context, a anchor) {
	s := r.submissions[0]
	limit := time.Now().Add(time.Minute)
	for time.Now().Before(limit) {
		now := s.now()
		switch {
		case a == start, now.ID != "" && now.Over(), a == ran && now.Done > 0, a == saved && r.savedEverywhere(s):
			return
		}
		if rest(ctx, look) != nil {
			return
		}
	}
}

// resolve returns the name of the process that a fault affects.
func (r *running) resolve(name string) string {
	now := r.submissions[0].now()
	if now.Process == "" {
		now.Process = r.programme.Names[0]
	}
	switch name {
	case owner:
		return now.Process
	case holder:
		for _, other := range slices.Backward(append(slices.Clone(r.programme.Names), now.Holders...)) {
			if other != now.Process {
				return other
			}
		}
	}
	return name
}

// replace ends a process and starts the next incarnation.
func (r *running) replace(ctx context.Context, f *fault, p *process) {
	r.event("%s: %s, after %v", p.name, f.Kind, f.For)
	sig := syscall.SIGKILL
	if f.Kind == term || f.Kind == upgrade {
		sig = syscall.SIGTERM
	}
	p.end(sig)
	switch f.Kind {
	case upgrade:
		p.rebuild()
	case empty:
		r.failed(p.lose())
	}
	_ = rest(ctx, f.For)
	r.failed(p.start())
	_ = r.await(ctx, "start of "+p.name, p.ready)
}

// rebuild makes the next incarnation run the other build.
func (p *process) rebuild() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.other = !p.other
}

// lose deletes all records from the disk. The process may be writing records meanwhile.
func (p *process) lose() (err error) {
	p.mu.Lock()
	p.lost = true
	p.changes++
	p.mu.Unlock()
	for range 20 {
		if err = os.RemoveAll(p.records()); err == nil {
			return nil
		}
	}
	return err
}

// cut drops packets between processes for a while.
func (r *running) cut(ctx context.Context, f *fault, on string) {
	var drops [][2]string // receiver, sender
	for _, other := range r.programme.Names {
		switch {
		case other == on:
		case f.Kind == isolate, f.Kind == cutBoth && other == f.To:
			drops = append(drops, [2]string{other, on}, [2]string{on, other})
		case f.Kind == cutOne && other == f.To:
			drops = append(drops, [2]string{other, on})
		}
	}
	if len(drops) == 0 {
		return
	}
	r.event("%s: %s %s, for %v", on, f.Kind, f.To, f.For)
	for _, d := range drops {
		r.drop(d, 1)
	}
	_ = rest(ctx, f.For)
	for _, d := range drops {
		r.drop(d, -1)
	}
	r.event("%s: packets come through again", on)
}

// drop counts the faults that drop packets in one direction, and applies the first and the last.
func (r *running) drop(way [2]string, n int) {
	r.mu.Lock()
	before := r.dropped[way]
	r.dropped[way] += n
	now := r.dropped[way]
	r.mu.Unlock()
	if (before > 0) != (now > 0) {
		r.failed(r.island.drop(way[0], way[1], now > 0))
	}
}

// spoil makes a disk reject writes until a submission's status or log reports the disk.
func (r *running) spoil(ctx context.Context, f *fault, p *process) {
	set := func(on bool) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.spoiled, p.handed = on, true
		p.changes++
	}
	set(true)
	defer set(false)
	filler := filepath.Join(p.disk, "filler")
	kind := f.Kind
	if kind == frozen && mount("-o", "remount,ro", p.disk) != nil {
		kind = full // an open file prevents the remount
	}
	if kind == full {
		r.failed(fill(filler))
		defer func() { r.failed(os.Remove(filler)) }()
	} else {
		defer func() { r.failed(mount("-o", "remount,rw", p.disk)) }()
	}
	r.event("%s: %s", p.name, kind)
	r.named(ctx, p)
	_ = rest(ctx, f.For)
	r.event("%s: its disk accepts writes again", p.name)
}

// fill writes a file until the disk is full.
func fill(path string) error {
	out, err := os.Create(path)
	if err != nil {
		return err
	}
	for err == nil {
		_, err = out.Write(make([]byte, 64<<10))
	}
	for err = nil; err == nil; {
		_, err = out.Write(make([]byte, 512))
	}
	if errors.Is(err, syscall.ENOSPC) {
		err = nil
	}
	return errors.Join(err, out.Close())
}

// inflictAll kills all processes at once and starts them again.
func (r *running) inflictAll(ctx context.Context, f *fault) {
	for _, p := range r.processes {
		p.change.Lock()
		defer p.change.Unlock()
	}
	if ctx.Err() != nil {
		return
	}
	r.event("%s, after %v", f.Kind, f.For)
	var ends sync.WaitGroup
	for _, p := range r.processes {
		ends.Go(func() { p.end(syscall.SIGKILL) })
	}
	ends.Wait()
	r.interrupted(f.Kind == flip)
	_ = rest(ctx, f.For)
	for _, p := range r.processes {
		if f.Kind == newAll {
			p.rebuild()
		}
		r.failed(p.start())
	}
	for _, p := range r.processes {
		_ = r.await(ctx, "start of "+p.name, p.ready)
	}
}

// changeBit flips a bit of a parameter, in the second half of a checkpoint's largest file.
func changeBit(dir string, random *rand.Rand) error {
	path := filepath.Join(dir, "tensors.safetensors")
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	at := len(text)/2 + random.IntN(len(text)/2)
	text[at] ^= 1 << random.IntN(8)
	return os.WriteFile(path, text, 0o600)
}
