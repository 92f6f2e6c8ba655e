package control

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
)

// longestSocket is what the address of a Unix socket can hold on every system.
const longestSocket = 100

// socket returns where the socket of a broker's directory is: in it, or with the temporary files where that has too long a
// path.
func socket(dir string) (string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("control: %w", err)
	}

	// Whoever takes another way to the directory finds the same socket.
	if resolved, err := filepath.EvalSymlinks(dir); err == nil {
		dir = resolved
	}

	if path := filepath.Join(dir, "control.sock"); len(path) <= longestSocket {
		return path, nil
	}

	sum := sha256.Sum256([]byte(dir))

	return filepath.Join(os.TempDir(), "millrace-"+hex.EncodeToString(sum[:8])+".sock"), nil
}
