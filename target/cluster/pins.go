package cluster

import (
	"math/bits"
	"sync"
	"time"
	"unique"

	"tbl/target"
)

// PinsConfig configures a pin store. The zero value is usable.
type PinsConfig struct {
	// Max bounds the transactions remembered at once: one that comes on top
	// is refused, because forgetting another could split that one. The bound
	// holds for each part of the store, so that the first refusal can come
	// some per cent early. 0: 2,097,152.
	Max int
	// TTL is how long a transaction may last, from its first invocation. An
	// older one has timed out: it is forgotten, and its later invocations are
	// refused. 0: 5 minutes. Negative: for ever.
	TTL time.Duration
	// Clock times the TTL. Nil: the wall's.
	Clock target.Clock
}

// Pins remembers which node each running transaction is pinned to. Proxies
// that share it, over whatever transport and of whatever service, send one
// transaction to one node. It is safe for concurrent use: the transactions
// are spread over parts, each with a lock that is held for some instructions,
// never during an invocation.
type Pins struct {
	clock  target.Clock
	base   time.Time
	ttl    int64 // ns; 0: for ever
	limit  uint32
	mask   uint64
	shards []pinShard
}

// pinShard is one part: an index into chunks of records. The records in use
// form a list, oldest first, and the others a list of free ones.
type pinShard struct {
	mu         sync.Mutex
	index      map[TxID]uint32 // numbers start at 1
	chunks     []*[pinChunk]pin
	free       uint32
	head, tail uint32
	seq        uint32
	_          [72]byte // two cache lines: neighbours don't disturb each other
}

const (
	pinChunk  = 32
	maxShards = 1024
)

// pin is the record of one transaction.
type pin struct {
	id         TxID
	node       unique.Handle[string] // zero: not pinned
	deadline   int64                 // ns since the store's base; 0: the record is free
	next, prev uint32
	seq        uint32 // tells this claim of a node from all others of its part
	held       int16  // invocations under way on this claim
	firm       bool   // some invocation has reached the node, or counts as if
}

// claim is an invocation's hold on a pin, from before it is sent until its
// outcome is known.
type claim struct {
	slot, seq uint32 // the record's number, and which of its claims
}

// NewPins makes an empty store.
func NewPins(cfg PinsConfig) *Pins {
	if cfg.Max <= 0 {
		cfg.Max = 2 << 20
	}
	if cfg.TTL == 0 {
		cfg.TTL = 5 * time.Minute
	}
	if cfg.Clock == nil {
		cfg.Clock = target.Wall{}
	}
	n := maxShards // a power of two, and no part smaller than a chunk
	for n > 1 && cfg.Max/n < pinChunk {
		n /= 2
	}
	p := &Pins{
		clock: cfg.Clock, base: cfg.Clock.Now(), ttl: max(0, int64(cfg.TTL)),
		limit: uint32((cfg.Max + n - 1) / n), mask: uint64(n - 1), shards: make([]pinShard, n),
	}
	for i := range p.shards {
		p.shards[i].index = make(map[TxID]uint32)
	}
	return p
}

func (p *Pins) now() int64 { return int64(p.clock.Now().Sub(p.base)) }

func (p *Pins) shard(id TxID) *pinShard {
	return &p.shards[(id.lo^bits.RotateLeft64(id.hi, 32))&p.mask]
}

// Pin is the node that a transaction is pinned to, and whether firmly; ok is
// false when it has no pin.
func (p *Pins) Pin(id TxID) (node string, firm, ok bool) {
	s := p.shard(id)
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.get(id)
	if e == nil || e.node == (unique.Handle[string]{}) {
		return "", false, false
	}
	return e.node.Value(), e.firm, true
}

// Len is how many transactions are remembered, pinned or not.
func (p *Pins) Len() int {
	n := 0
	for i := range p.shards {
		s := &p.shards[i]
		s.mu.Lock()
		n += len(s.index)
		s.mu.Unlock()
	}
	return n
}

// End forgets a transaction. Tx.End calls it; it is for those who know only
// the id.
func (p *Pins) End(id TxID) {
	s := p.shard(id)
	s.mu.Lock()
	if i, ok := s.index[id]; ok {
		s.drop(i)
	}
	s.mu.Unlock()
}

func (s *pinShard) at(i uint32) *pin { return &s.chunks[(i-1)/pinChunk][(i-1)%pinChunk] }

// get is the record of id, nil when there is none.
func (s *pinShard) get(id TxID) *pin {
	if i, ok := s.index[id]; ok {
		return s.at(i)
	}
	return nil
}

// add makes a record at the young end of the list.
func (s *pinShard) add(id TxID, deadline int64) uint32 {
	if s.free == 0 {
		first := uint32(len(s.chunks)*pinChunk) + 1
		s.chunks = append(s.chunks, new([pinChunk]pin))
		for i := first; i < first+pinChunk; i++ {
			s.at(i).next = s.free
			s.free = i
		}
	}
	i := s.free
	e := s.at(i)
	s.free = e.next
	*e = pin{id: id, deadline: deadline, prev: s.tail}
	if s.tail != 0 {
		s.at(s.tail).next = i
	} else {
		s.head = i
	}
	s.tail = i
	s.index[id] = i
	return i
}

// drop frees record i.
func (s *pinShard) drop(i uint32) {
	e := s.at(i)
	delete(s.index, e.id)
	if e.prev != 0 {
		s.at(e.prev).next = e.next
	} else {
		s.head = e.next
	}
	if e.next != 0 {
		s.at(e.next).prev = e.prev
	} else {
		s.tail = e.prev
	}
	*e = pin{next: s.free}
	s.free = i
}

// expire drops up to n records whose time is over, oldest first.
func (s *pinShard) expire(now int64, n int) {
	for ; n > 0 && s.head != 0 && s.at(s.head).deadline <= now; n-- {
		s.drop(s.head)
	}
}

// claim decides where an invocation of tx goes, and holds that decision until
// settle: the pin if there is one, else what the proxy's base policy picks.
// now is the time since the store's base.
func (p *Pins) claim(x *Proxy, tx *Tx, now int64) (*member, claim, error) {
	s := p.shard(tx.id)
	s.mu.Lock()
	defer s.mu.Unlock()
	i, err := p.record(s, tx, now)
	if err != nil {
		return nil, claim{}, err
	}
	e := s.at(i)
	if e.deadline <= now && p.ttl > 0 {
		s.drop(i)
		return nil, claim{}, ErrTransactionEnded
	}
	// Read under the lock: whoever released a failed node's pin had taken the
	// node out of the list before.
	list := x.family.snap.Load()
	var m *member
	pinned := e.node != unique.Handle[string]{}
	if pinned {
		if m = list.find(e.node); m != nil {
			e.held++
			return m, claim{i, e.seq}, nil
		}
		if x.gone == Refuse {
			return nil, claim{}, ErrStickyTargetGone
		}
	}
	if m = x.pick(x, list); m == nil {
		return nil, claim{}, ErrUnavailable
	}
	if s.seq++; s.seq == 0 {
		s.seq = 1 // 0 marks a free record
	}
	e.node, e.seq, e.held = m.id, s.seq, 1
	e.firm = pinned || x.mode == AtBegin
	return m, claim{i, e.seq}, nil
}

// record finds the record of a transaction, and makes it when there never
// was one.
func (p *Pins) record(s *pinShard, tx *Tx, now int64) (uint32, error) {
	mine := tx.first.Load() == p
	if mine {
		// The usual way, without a search: the record is where it was.
		if i := tx.slot.Load(); i != 0 && s.at(i).id == tx.id && s.at(i).deadline != 0 {
			return i, nil
		}
	}
	if i, ok := s.index[tx.id]; ok {
		if !mine && !tx.attached(p) && !tx.attach(p) {
			return 0, ErrTransactionEnded
		}
		return i, nil
	}
	if mine || tx.attached(p) {
		return 0, ErrTransactionEnded // it had one
	}
	deadline := int64(never)
	if p.ttl > 0 {
		deadline = max(now, 0) + p.ttl
		s.expire(now, 2)
	}
	if len(s.index) >= int(p.limit) {
		s.expire(now, len(s.index))
		if len(s.index) >= int(p.limit) {
			return 0, ErrTooManyTransactions
		}
	}
	if !tx.attach(p) {
		return 0, ErrTransactionEnded
	}
	i := s.add(tx.id, deadline)
	if tx.first.Load() == p {
		tx.slot.Store(i)
	}
	return i, nil
}

// settle ends a claim, and reports whether the invocation may fail over: it
// was not done, no invocation of the transaction has reached a server, and
// none is under way. The pin is then released.
func (p *Pins) settle(id TxID, c claim, o outcome) bool {
	s := p.shard(id)
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.at(c.slot)
	if e.seq != c.seq {
		return false // ended, or pinned anew, meanwhile
	}
	e.held--
	if o == outcomeOK || o == outcomeReached {
		e.firm = true
		return false
	}
	if e.firm || e.held > 0 {
		return false
	}
	e.node = unique.Handle[string]{}
	return o == outcomeNotDone
}
