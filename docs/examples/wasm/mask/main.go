//go:build wasip1

// Command mask is a WebAssembly module that puts a hash in the place of users' names.
package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"

	"github.com/millrace/millrace/plugins/wasm/guest"
)

func init() { guest.Handle(mask) } //nolint:gochecknoinits // how a module without a main begins

func mask(body []byte) error {
	var visit map[string]any
	if err := json.Unmarshal(body, &visit); err != nil {
		return guest.Reject(err)
	}

	user, ok := visit["user"].(string)
	if !ok {
		return guest.Reject(errors.New("it has no user"))
	}

	hash := hmac.New(sha256.New, []byte(os.Getenv("SALT")))
	hash.Write([]byte(user))

	visit["user"] = hex.EncodeToString(hash.Sum(nil)[:8])

	masked, err := json.Marshal(visit)
	if err != nil {
		return guest.Reject(err)
	}

	guest.Emit(masked)

	return nil
}

func main() {} // never called: the module is a library
