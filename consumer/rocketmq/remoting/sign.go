package remoting

import (
	"crypto/hmac"
	"crypto/sha1" //nolint:gosec // the servers accept no other; an HMAC does not need a hash without collisions
	"encoding/base64"
	"maps"
	"slices"
)

// The ext fields of a signed request.
const (
	fieldAccessKey     = "AccessKey"
	fieldSecurityToken = "SecurityToken"
	fieldSignature     = "Signature"
)

// Credentials are who we are to servers that check it. The zero value signs nothing.
type Credentials struct {
	// AccessKey names the user, SecretKey is what the signatures are made with.
	AccessKey, SecretKey string
	// SecurityToken comes with keys that are given for a while; empty for others.
	SecurityToken string
}

// Sign returns ext with the credentials' fields and the signature of fields and body. The argument is not changed.
func (c Credentials) Sign(ext map[string]string, body []byte) map[string]string {
	signed := make(map[string]string, len(ext)+3)
	maps.Copy(signed, ext)
	delete(signed, fieldSignature)

	signed[fieldAccessKey] = c.AccessKey
	if c.SecurityToken != "" {
		signed[fieldSecurityToken] = c.SecurityToken
	}

	mac := hmac.New(sha1.New, []byte(c.SecretKey))

	for _, key := range slices.Sorted(maps.Keys(signed)) {
		mac.Write([]byte(signed[key]))
	}

	mac.Write(body)

	signed[fieldSignature] = base64.StdEncoding.EncodeToString(mac.Sum(nil))

	return signed
}
