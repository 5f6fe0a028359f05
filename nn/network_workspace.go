package nn

import (
	"sync"
	"sync/atomic"

	"github.com/gradwire/gradwire/nn/kernel"
)

// networkWorkspace computes a network block by block. Within a block, tiles of tileLanes samples go
// through the stages before the split one by one; what they yield is gathered into the columns of
// one matrix for the stages from it on. Workers share the tiles of a block and the rows of a dense
// layer. What a tile contributes to the gradient is kept apart and added in the order of the tiles,
// so the number of workers does not show.
type networkWorkspace struct {
	net      *Network
	maxBatch int
	rows     int         // of a block
	kept     [][]float32 // of values 0 to split, those that backward reads: one tile after the other, else nil
	places   [][]uint16  // of the stages before split, the places of maxima: one tile after the other
	partial  [][]float32 // gradients of the shared parameters, of each tile
	prepared [][]float32 // weights of convolutions in their own order
	values   [][]float32 // of values split to the last: size×samples of the block
	deltas   [][]float32 // gradients of the loss with respect to them
	sorted   []float32   // logits with the classes innermost
	workers  []*networkWorker

	// The block in progress.
	params, grad []float32
	batch        Batch
	samples      *Samples // that stand in the place of the batch's
	first, n     int      // its samples
	training     bool
	stage        int // in which the workers share rows
	whole        tile

	task                                                  func(*networkWorker, int)
	forwardTask, backwardTask, rowsTask, gradTask, dxTask func(*networkWorker, int)
	units                                                 int
	next                                                  atomic.Int64
	group                                                 sync.WaitGroup
}

// networkWorker has room for one tile.
type networkWorker struct {
	tile   tile
	values [][]float32
	places []uint16
	deltas [2][]float32
	room   []float32
	loop   func()
}

var _ Workspace = (*networkWorkspace)(nil)

// NewWorkspace returns a workspace for batches of 1 to maxBatch samples that computes on the
// caller's goroutine.
func (n *Network) NewWorkspace(maxBatch int) Workspace { return n.NewParallelWorkspace(maxBatch, 1) }

// NewParallelWorkspace is NewWorkspace with the work of each call shared by the given number of
// goroutines, the caller's included. Results are the same for any number of threads. The size of a
// workspace grows with maxBatch up to a bound, about 100 megabytes or what 16 samples take.
func (n *Network) NewParallelWorkspace(maxBatch, threads int) Workspace {
	if maxBatch < 1 {
		panic(badMaxBatch)
	}
	if threads < 1 {
		panic(badThreads)
	}
	w := &networkWorkspace{net: n, maxBatch: maxBatch, rows: min(maxBatch, n.block)}
	w.allocate()
	for range threads {
		w.workers = append(w.workers, w.newWorker())
	}
	w.forwardTask, w.backwardTask = w.forwardTile, w.backwardTile
	w.rowsTask, w.gradTask, w.dxTask = w.forwardRows, w.gradientRows, w.deltaRows
	return w
}

// allocate makes what the workers share.
func (w *networkWorkspace) allocate() {
	n := w.net
	tiles := (w.rows + tileLanes - 1) / tileLanes
	lanes := min(w.rows, tileLanes)
	w.kept, w.places, w.prepared = make([][]float32, n.split+1), make([][]uint16, n.split), make([][]float32, n.split)
	for i, s := range n.stages[:n.split] {
		x, y := s.needs()
		if x && w.kept[i] == nil {
			w.kept[i] = make([]float32, tiles*n.size(i)*lanes)
		}
		if s.inPlace && w.kept[i] == nil && y {
			w.kept[i] = make([]float32, tiles*n.size(i)*lanes)
		}
		if s.inPlace {
			w.kept[i+1] = w.kept[i]
		} else if y {
			w.kept[i+1] = make([]float32, tiles*s.size*lanes)
		}
		switch op := s.operation.(type) {
		case *maxPool:
			w.places[i] = make([]uint16, tiles*s.size*lanes)
		case *conv:
			w.prepared[i] = make([]float32, op.prepared())
		}
	}
	for range tiles {
		w.partial = append(w.partial, make([]float32, n.shared))
	}
	for i := n.split; i <= len(n.stages); i++ {
		if i > n.split && n.stages[i-1].inPlace {
			w.values = append(w.values, w.values[len(w.values)-1])
			w.deltas = append(w.deltas, w.deltas[len(w.deltas)-1])
			continue
		}
		w.values = append(w.values, make([]float32, n.size(i)*w.rows))
		w.deltas = append(w.deltas, make([]float32, n.size(i)*w.rows))
	}
	w.sorted = make([]float32, n.Classes()*w.rows)
}

// size is the number of values of one sample before stage i.
func (n *Network) size(i int) int {
	if i == 0 {
		return n.input.Size()
	}
	return n.stages[i-1].size
}

func (w *networkWorkspace) newWorker() *networkWorker {
	n, k := w.net, &networkWorker{}
	lanes := min(w.rows, tileLanes)
	largest, room, places := 0, 0, 0
	for i := range n.split + 1 {
		if i > 0 && n.stages[i-1].inPlace {
			k.values = append(k.values, k.values[i-1])
		} else {
			k.values = append(k.values, make([]float32, n.size(i)*lanes))
		}
		largest = max(largest, n.size(i))
		if i == n.split {
			break
		}
		switch op := n.stages[i].operation.(type) {
		case *conv:
			room = max(room, op.room(lanes))
		case *maxPool:
			places = max(places, op.out.Size()*lanes)
		}
	}
	k.room, k.places = make([]float32, room), make([]uint16, places)
	for i := range k.deltas {
		k.deltas[i] = make([]float32, largest*lanes)
	}
	k.loop = func() {
		w.work(k)
		w.group.Done()
	}
	return k
}

// run calls task for every unit from 0 on, shared by the workers.
func (w *networkWorkspace) run(task func(*networkWorker, int), units int) {
	w.task, w.units = task, units
	w.next.Store(0)
	helpers := w.workers[1:max(min(len(w.workers), units), 1)]
	w.group.Add(len(helpers))
	for _, k := range helpers {
		go k.loop()
	}
	w.work(w.workers[0])
	w.group.Wait()
}

// work takes units until there are none left.
func (w *networkWorkspace) work(k *networkWorker) {
	for {
		unit := int(w.next.Add(1)) - 1
		if unit >= w.units {
			return
		}
		w.task(k, unit)
	}
}

// Gradient implements [Workspace].
func (w *networkWorkspace) Gradient(params, grad []float32, b Batch) float64 {
	n := len(b.Y)
	if n < 1 || n > w.maxBatch {
		panic(badBatch)
	}
	if len(grad) != w.net.params {
		panic(badGrad)
	}
	checkBatch(w.net, params, b)
	clear(grad[:w.net.shared]) // the dense layers set theirs in the first block
	w.params, w.grad, w.batch, w.training = params, grad, b, true
	w.prepare()
	weight := b.weight()
	scale := float32(1 / weight)
	sum := lossSum{product: 1}
	for w.first = 0; w.first < n; w.first += w.rows {
		w.n = min(w.rows, n-w.first)
		logits, y := w.forward(), b.Y[w.first:w.first+w.n]
		transpose(w.sorted, logits, w.net.Classes(), w.n)
		if b.Weights == nil {
			sum.gradient(w.sorted[:len(logits)], w.net.Classes(), y, scale)
		} else {
			sum.weightedGradient(w.sorted[:len(logits)], w.net.Classes(), y, 1/weight, b.Weights)
		}
		w.backward()
	}
	w.release()
	return sum.total() / weight
}

// Evaluate implements [Workspace].
func (w *networkWorkspace) Evaluate(params []float32, b Batch) (float64, int) {
	checkBatch(w.net, params, b)
	w.params, w.batch, w.training = params, b, false
	w.prepare()
	sum := lossSum{product: 1}
	correct := 0
	for w.first = 0; w.first < len(b.Y); w.first += w.rows {
		w.n = min(w.rows, len(b.Y)-w.first)
		logits := w.forward()
		transpose(w.sorted, logits, w.net.Classes(), w.n)
		correct += sum.score(w.sorted[:len(logits)], w.net.Classes(), b.Y[w.first:w.first+w.n])
	}
	w.release()
	return sum.total(), correct
}

// prepare lets the convolutions bring their weights into order.
func (w *networkWorkspace) prepare() {
	for i, s := range w.net.stages[:w.net.split] {
		if c, ok := s.operation.(*conv); ok {
			c.prepare(w.prepared[i], w.params[s.first:s.end])
		}
	}
}

// release forgets the caller's slices.
func (w *networkWorkspace) release() { w.params, w.grad, w.batch, w.samples = nil, nil, Batch{}, nil }

// checkBatch panics unless params and b fit the model.
func checkBatch(m Model, params []float32, b Batch) {
	if len(params) != m.Params() {
		panic(badParams)
	}
	switch {
	case b.Sparse == nil && len(b.X) != len(b.Y)*m.Inputs():
		panic(badX)
	case b.Sparse != nil && (b.Sparse.inputs != m.Inputs() || len(b.Rows) != len(b.Y) || !b.Sparse.has(b.Rows)):
		panic(badSparse)
	}
	if b.Weights != nil && len(b.Weights) != m.Classes() {
		panic(badWeights)
	}
	checkLabels(m, b.Y)
}

// checkLabels panics unless all labels are classes.
func checkLabels(m Model, y []int32) {
	classes := uint32(m.Classes())
	for _, label := range y {
		if uint32(label) >= classes {
			panic(badLabel)
		}
	}
}

// tiles is the number of tiles of the block in progress.
func (w *networkWorkspace) tiles() int { return (w.n + tileLanes - 1) / tileLanes }

// forward computes the block's logits, classes×samples.
func (w *networkWorkspace) forward() []float32 {
	w.run(w.forwardTask, w.tiles())
	for i := w.net.split; i < len(w.net.stages); i++ {
		s := &w.net.stages[i]
		if d, ok := s.operation.(*dense); ok {
			w.stage = i
			w.run(w.rowsTask, w.shares(d.out))
			continue
		}
		w.whole = w.blockTile(i)
		s.forward(&w.whole, w.value(i), w.value(i+1))
	}
	return w.value(len(w.net.stages))
}

// value is what comes before stage i, from split on, for the block in progress.
func (w *networkWorkspace) value(i int) []float32 {
	return w.values[i-w.net.split][:w.net.size(i)*w.n]
}

func (w *networkWorkspace) delta(i int) []float32 {
	return w.deltas[i-w.net.split][:w.net.size(i)*w.n]
}

// blockTile describes the block to stage i.
func (w *networkWorkspace) blockTile(i int) tile {
	s := &w.net.stages[i]
	t := tile{lanes: w.n, training: w.training, seed: stageSeed(w.batch.Seed, i), first: w.first,
		params: w.params[s.first:s.end]}
	if w.training {
		t.grad, t.fresh = w.grad[s.first:s.end], w.first == 0
	}
	return t
}

// stageSeed is the seed of dropout in stage i.
func stageSeed(seed uint64, i int) uint64 {
	return uint64(hash(seed+uint64(i)))<<32 | uint64(hash(^seed+uint64(i)))
}

// shares is into how many parts of about minRows or more rows a dense layer is divided.
func (w *networkWorkspace) shares(rows int) int {
	const minRows = 24
	return min(len(w.workers), (rows+minRows-1)/minRows)
}

// share returns the rows of a part.
func (w *networkWorkspace) share(rows, unit int) (first, end int) {
	const multiple = 6 // the height of the usual kernel
	size := ((rows+w.units-1)/w.units + multiple - 1) / multiple * multiple
	return min(unit*size, rows), min((unit+1)*size, rows)
}

func (w *networkWorkspace) forwardRows(_ *networkWorker, unit int) {
	d, t := w.net.stages[w.stage].operation.(*dense), w.blockTile(w.stage)
	if first, end := w.share(d.out, unit); first < end {
		d.forwardRows(&t, w.value(w.stage), w.value(w.stage+1), first, end)
	}
}

func (w *networkWorkspace) gradientRows(_ *networkWorker, unit int) {
	d, t := w.net.stages[w.stage].operation.(*dense), w.blockTile(w.stage)
	if first, end := w.share(d.out, unit); first < end {
		d.gradientRows(&t, w.value(w.stage), w.delta(w.stage+1), first, end)
	}
}

func (w *networkWorkspace) deltaRows(_ *networkWorker, unit int) {
	d, t := w.net.stages[w.stage].operation.(*dense), w.blockTile(w.stage)
	if first, end := w.share(d.in, unit); first < end {
		d.deltaRows(&t, w.delta(w.stage), w.delta(w.stage+1), first, end)
	}
}

// backward adds to the gradient what the block contributes, given the gradient with respect to the
// logits in sorted.
func (w *networkWorkspace) backward() {
	n := w.net
	transpose(w.delta(len(n.stages)), w.sorted, w.n, n.Classes())
	for i := len(n.stages) - 1; i >= n.split; i-- {
		w.stage = i
		below := n.stages[i].first > 0 // whether a stage before it has parameters
		if d, ok := n.stages[i].operation.(*dense); ok {
			w.run(w.gradTask, w.shares(d.out))
			if below {
				w.run(w.dxTask, w.shares(d.in))
			}
			continue
		}
		if !below {
			return
		}
		w.whole = w.blockTile(i)
		n.stages[i].backward(&w.whole, w.value(i), w.value(i+1), w.delta(i), w.delta(i+1))
	}
	if n.shared == 0 {
		return
	}
	w.run(w.backwardTask, w.tiles())
	for _, p := range w.partial[:w.tiles()] {
		AddScaled(w.grad[:n.shared], 1, p)
	}
}

// tile makes the worker ready for a tile of the block.
func (w *networkWorkspace) tile(k *networkWorker, unit int) {
	k.tile = tile{lanes: min(tileLanes, w.n-unit*tileLanes), training: w.training, first: w.first + unit*tileLanes,
		room: k.room}
}

// at returns what comes before stage i, up to split, in the given tile.
func (w *networkWorkspace) at(k *networkWorker, unit, i int) []float32 {
	size := w.net.size(i) * k.tile.lanes
	if w.training && w.kept[i] != nil {
		return w.kept[i][unit*tileLanes*w.net.size(i):][:size]
	}
	return k.values[i][:size]
}

// enter describes to the worker's tile stage i.
func (w *networkWorkspace) enter(k *networkWorker, unit, i int) *stage {
	s, t := &w.net.stages[i], &k.tile
	t.seed = stageSeed(w.batch.Seed, i)
	t.params, t.prepared = w.params[s.first:s.end], w.prepared[i]
	t.places = k.places
	if w.training {
		t.grad = w.partial[unit][s.first:s.end]
		if w.places[i] != nil {
			t.places = w.places[i][unit*tileLanes*s.size:]
		}
	}
	return s
}

// forwardTile takes a tile through the stages before the split.
func (w *networkWorkspace) forwardTile(k *networkWorker, unit int) {
	w.tile(k, unit)
	n, t := w.net, &k.tile
	x := w.input(k, unit)
	for i := range n.split {
		y := w.at(k, unit, i+1)
		w.enter(k, unit, i).forward(t, x, y)
		x = y
	}
	column, values := unit*tileLanes, w.value(n.split)
	kernel.CopyRows(values[column:], w.n, x, t.lanes, n.size(n.split), t.lanes)
}

// backwardTile computes what a tile contributes to the gradient of the shared parameters.
func (w *networkWorkspace) backwardTile(k *networkWorker, unit int) {
	w.tile(k, unit)
	n, t := w.net, &k.tile
	clear(w.partial[unit])
	dy := k.deltas[0][:n.size(n.split)*t.lanes]
	column, deltas := unit*tileLanes, w.delta(n.split)
	kernel.CopyRows(dy, t.lanes, deltas[column:], w.n, n.size(n.split), t.lanes)
	free := k.deltas[1]
	for i := n.split - 1; i >= 0 && n.stages[i].end > 0; i-- {
		s, dx := w.enter(k, unit, i), []float32(nil)
		if s.inPlace {
			dx = dy
		} else if s.first > 0 {
			dx = free[:n.size(i)*t.lanes]
		}
		s.backward(t, w.at(k, unit, i), w.at(k, unit, i+1), dx, dy)
		if !s.inPlace {
			free, dy = dy[:cap(dy)], dx
		}
	}
}

// transpose writes the rows×columns matrix src to dst as columns×rows.
func transpose(dst, src []float32, rows, columns int) {
	const block = 64 // columns at a time, whose lines of dst stay in the cache
	for j := 0; j < columns; j += block {
		for i := range rows {
			o := j*rows + i
			for _, v := range src[i*columns+j : i*columns+min(j+block, columns)] {
				dst[o] = v
				o += rows
			}
		}
	}
}
