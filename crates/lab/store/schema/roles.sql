-- Roles for a store that several people and hosts share. Run it as a superuser, or as the owner of the database with
-- CREATEROLE, after the tables exist and after each `marvin store upgrade`; running it again changes nothing.
-- It works in the schema of the connection. Logins are made by hand: CREATE ROLE lab LOGIN PASSWORD '…' IN ROLE marvin_worker;
BEGIN;
DO $$
DECLARE
    name text;
    place text := current_schema();
BEGIN
    FOREACH name IN ARRAY ARRAY['marvin_reader', 'marvin_submitter', 'marvin_worker', 'marvin_owner'] LOOP
        IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = name) THEN
            EXECUTE format('CREATE ROLE %I NOLOGIN', name);
        END IF;
        EXECUTE format('GRANT USAGE ON SCHEMA %I TO %I', place, name);
        EXECUTE format('GRANT SELECT ON ALL TABLES IN SCHEMA %I TO %I', place, name);
    END LOOP;
    EXECUTE format('GRANT CREATE ON SCHEMA %I TO marvin_owner', place);
    -- Only the owner of a table may change its schema or compact it.
    FOR name IN SELECT tablename FROM pg_tables WHERE schemaname = place LOOP
        EXECUTE format('ALTER TABLE %I.%I OWNER TO marvin_owner', place, name);
    END LOOP;
END $$;

-- Who submits queues, cancels, reserves and triages. A row is locked by the right to change it.
GRANT INSERT, UPDATE ON queue TO marvin_submitter, marvin_worker;
GRANT INSERT, UPDATE, DELETE ON reservations TO marvin_submitter, marvin_worker;
GRANT INSERT ON decisions TO marvin_submitter, marvin_worker;
-- Reserving and triaging lock runs, which takes the right to change them; a trigger refuses each change.
GRANT UPDATE ON runs TO marvin_submitter, marvin_worker;

-- A worker also stores results, which no role but the owner's can delete.
GRANT INSERT ON builds, machines, fingerprints, runs, environments, results, artefacts, kernels TO marvin_worker;
GRANT UPDATE ON builds, kernels TO marvin_worker;
GRANT INSERT, UPDATE ON health, notices, deliveries TO marvin_worker;
COMMIT;
