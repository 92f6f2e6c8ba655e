package cli

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/millrace/millrace/consumer/rocketmq/routes"
	"github.com/millrace/millrace/pipeline"
	"github.com/millrace/millrace/pipeline/jobfile"
)

// clusterScheme is what the names of clusters begin with.
const clusterScheme = "rocketmq://"

// The variables with the credentials for a cluster that is named by its address.
const (
	variableKey    = "RMQ_KEY"
	variableSecret = "RMQ_SECRET"
	variableToken  = "RMQ_TOKEN"
)

const clusterText = `--broker rocketmq://HOST:PORT[,HOST:PORT] names a RocketMQ cluster by its name servers, with ?tls=true, ca,
certificate, certificate_key, server_name and namespace as job files have them. The variables ` +
	variableKey + ", " + variableSecret + " and " + variableToken + ` of the
environment sign what is sent. A job file names its cluster with all of its settings.`

// parseCluster reads rocketmq://host:port,host:port?tls=true&namespace=n, with the credentials of the environment.
func parseCluster(text string, variables jobfile.Variables) (*jobfile.RocketMQ, error) {
	servers, query, _ := strings.Cut(strings.TrimPrefix(text, clusterScheme), "?")
	servers = strings.TrimSuffix(servers, "/")

	if strings.Contains(servers, "@") {
		return nil, usagef("--broker: command lines are seen by everybody; put credentials into the variables %s and %s",
			variableKey, variableSecret)
	}

	r := &jobfile.RocketMQ{NameServers: strings.Split(servers, ",")}
	if err := routes.CheckNameServers(r.NameServers); err != nil {
		return nil, usagef("--broker: %w; write it like %s127.0.0.1:9876", err, clusterScheme)
	}

	values, err := url.ParseQuery(query)
	if err != nil {
		return nil, usagef("--broker: %w", err)
	}

	if err := setCluster(r, values); err != nil {
		return nil, usagef("--broker: %w", err)
	}

	if variables.Lookup == nil {
		return r, nil
	}

	r.AccessKey, _ = variables.Lookup(variableKey)
	r.SecretKey, _ = variables.Lookup(variableSecret)
	r.SecurityToken, _ = variables.Lookup(variableToken)

	if (r.AccessKey == "") != (r.SecretKey == "") {
		return nil, usagef("--broker: of the variables %s and %s one is set; set both, or none", variableKey, variableSecret)
	}

	return r, nil
}

// setCluster sets what stands behind the question mark.
func setCluster(r *jobfile.RocketMQ, values url.Values) error {
	texts := map[string]*string{
		"ca": &r.CA, "certificate": &r.Certificate, "certificate_key": &r.Key, "server_name": &r.ServerName,
		"namespace": &r.Namespace,
	}

	for name, all := range values {
		value := all[len(all)-1]

		if name == "tls" {
			yes, err := strconv.ParseBool(value)
			if err != nil {
				return fmt.Errorf("tls is %q; use true or false", value)
			}

			r.TLS = yes

			continue
		}

		into := texts[name]
		if into == nil {
			known := []string{"ca", "certificate", "certificate_key", "namespace", "server_name", "tls"}

			return fmt.Errorf("a cluster has no setting %q here; %s", name, pipeline.Suggest(name, known))
		}

		*into = value
	}

	if !r.TLS && slices.ContainsFunc([]string{r.CA, r.Certificate, r.ServerName}, func(s string) bool { return s != "" }) {
		return errors.New("ca, certificate and server_name mean nothing without tls; add tls=true")
	}

	if (r.Certificate == "") != (r.Key == "") {
		return errors.New("of certificate and certificate_key one is set; give both, or none")
	}

	return nil
}
