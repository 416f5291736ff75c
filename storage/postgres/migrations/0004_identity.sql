-- One row: which data this is. identity goes with the data when it is copied to another
-- database. state: 'active'; 'moving', while it is copied to peer; 'moved', when peer has
-- it all and this database must not be used; 'receiving', while it is filled from peer.
CREATE TABLE formsvc_identity (
  id       integer PRIMARY KEY CHECK (id = 1),
  identity uuid NOT NULL,
  state    text NOT NULL,
  peer     text NOT NULL,
  since    bigint NOT NULL
);
