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

// socket returns where the socket of a broker's directory is: in it, or with the user's caches where that has too long a
// path. It is never where other users could put one of their own.
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

	caches, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("control: %w; or use a directory with a shorter path than %s", err, dir)
	}

	path := filepath.Join(caches, "millrace", hex.EncodeToString(sum[:8])+".sock")
	if len(path) > longestSocket {
		return "", fmt.Errorf("control: both %s and %s are too long for a socket; use a broker directory with a shorter path",
			dir, path)
	}

	return path, nil
}
