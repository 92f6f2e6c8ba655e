package pipeline

// Memo is something that was made of a body at a price, such as a parsed document, and is kept with the message for the stages
// behind. Copies of the message share it, in other goroutines too: it must not change.
type Memo interface {
	// Source returns the body that it was made of.
	Source() []byte
}

// SetMemo keeps a memo with the message, in place of the one before; nil keeps none. Only the owner of the message may do so.
func (m *Message) SetMemo(memo Memo) { m.memo = memo }

// Memo returns what [Message.SetMemo] has kept, or nil when the body is not the very slice any more that it was made of.
func (m *Message) Memo() Memo {
	if m.memo == nil {
		return nil
	}

	source := m.memo.Source()
	if len(source) != len(m.Body) || len(source) > 0 && &source[0] != &m.Body[0] {
		return nil
	}

	return m.memo
}
