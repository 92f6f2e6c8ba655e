package remoting

import (
	"bufio"
	"fmt"
	"time"
)

const (
	writeBuffer = 32 << 10
	// writeTimeout is how long a server may take to accept a frame (a guess); then its connection is as good as lost.
	writeTimeout = 15 * time.Second
)

// write puts frames on the connection until it ends.
func (c *Conn) write() {
	w := bufio.NewWriterSize(c.raw, writeBuffer)

	for {
		select {
		case frame := <-c.out:
			if err := c.burst(w, frame); err != nil {
				c.end(fmt.Errorf("write: %w", err))

				return
			}
		case <-c.done:
			return
		}
	}
}

// burst writes a frame and all whose senders wait by then in as few system calls as possible.
func (c *Conn) burst(w *bufio.Writer, frame []byte) error {
	for {
		if err := c.raw.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
			return err //nolint:wrapcheck // the caller does
		}

		if _, err := w.Write(frame); err != nil {
			return err //nolint:wrapcheck // the caller does
		}

		select {
		case frame = <-c.out:
		default:
			return w.Flush() //nolint:wrapcheck // the caller does
		}
	}
}
