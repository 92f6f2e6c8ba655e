package rocketmqtest

import (
	"fmt"
	"testing"

	"github.com/millrace/millrace/consumer/rocketmq/remoting"
)

// signatures are the settings of a broker that knows one user, and lets others do what they are allowed.
func signatures(o Options) map[string]string {
	if o.AccessKey == "" {
		return nil
	}

	const (
		auth  = "org.apache.rocketmq.auth.authentication.provider."
		right = "org.apache.rocketmq.auth.authorization.provider."
	)

	return map[string]string{
		"authenticationEnabled":                "true",
		"authenticationProvider":               auth + "DefaultAuthenticationProvider",
		"authenticationMetadataProvider":       auth + "LocalAuthenticationMetadataProvider",
		"authorizationEnabled":                 "true",
		"authorizationProvider":                right + "DefaultAuthorizationProvider",
		"authorizationMetadataProvider":        right + "LocalAuthorizationMetadataProvider",
		"initAuthenticationUser":               fmt.Sprintf(`{"username":%q,"password":%q}`, o.AccessKey, o.SecretKey),
		"innerClientAuthenticationCredentials": fmt.Sprintf(`{"accessKey":%q,"secretKey":%q}`, o.AccessKey, o.SecretKey),
	}
}

// client are the settings of our own questions.
func (o Options) client() remoting.Options {
	return remoting.Options{
		TLS: o.tls.client, Credentials: remoting.Credentials{AccessKey: o.AccessKey, SecretKey: o.SecretKey},
	}
}

// createUser is the request that adds a user.
const createUser = 3001

// AddUser adds a user who may do nothing to a broker that asks for signatures.
func (b *Broker) AddUser(t testing.TB, name, password string) {
	t.Helper()

	client := b.client()
	defer client.Close()

	if _, err := client.Call(t.Context(), b.Addr, &remoting.Command{
		Code: createUser, Ext: map[string]string{"username": name},
		Body: fmt.Appendf(nil, `{"username":%q,"password":%q,"userType":"Normal"}`, name, password),
	}); err != nil {
		t.Fatal(err)
	}
}
