CREATE TABLE logs (
	id      text PRIMARY KEY,
	host    text,
	at      timestamptz NOT NULL,
	level   text        NOT NULL,
	service text        NOT NULL,
	message text        NOT NULL
);
