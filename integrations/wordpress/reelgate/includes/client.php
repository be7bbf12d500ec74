<?php
namespace Reelgate;

defined( 'ABSPATH' ) || exit;

/**
 * Calls the API of the Reelgate server.
 *
 * @param string     $method HTTP method.
 * @param string     $path   below /api, with its query.
 * @param array|null $body   sent as JSON.
 * @return array|\WP_Error what it answered. An error has a sentence for the site's owner, and the status in its data; never the secret.
 */
function call_api( $method, $path, $body = null, ?array $options = null ) {
	$options = $options ?? options();
	if ( '' === clean_server( $options['server'] ) || '' === $options['secret'] ) {
		return new \WP_Error( 'reelgate_settings', __( 'The address of the server or the API secret is missing. Enter both in Settings → Reelgate.', 'reelgate' ) );
	}
	$response = wp_remote_request(
		clean_server( $options['server'] ) . '/api' . $path,
		array(
			'method'      => $method,
			'timeout'     => 10,
			'redirection' => 0, // a redirect would get the secret
			'headers'     => array(
				'Authorization' => 'Apisecret ' . $options['secret'],
				'Content-Type'  => 'application/json',
				'Accept'        => 'application/json',
			),
			'body'        => null === $body ? null : wp_json_encode( $body ),
		)
	);
	if ( is_wp_error( $response ) ) {
		return new \WP_Error( 'reelgate_unreachable', unreachable_sentence( $response->get_error_message() ), array( 'status' => 503 ) );
	}
	$status = (int) wp_remote_retrieve_response_code( $response );
	$reply  = json_decode( wp_remote_retrieve_body( $response ), true );
	if ( $status >= 200 && $status < 300 && is_array( $reply ) ) {
		return $reply;
	}
	return new \WP_Error( 'reelgate_refused', refusal_sentence( $status, $reply ), array( 'status' => $status ) );
}

/** @param string $reason as WordPress's HTTP API words it. */
function unreachable_sentence( $reason ) {
	if ( preg_match( '/resolve|getaddrinfo|name or service/i', $reason ) ) {
		return __( 'There is no server of this name. Check the address for a typing error.', 'reelgate' );
	}
	if ( preg_match( '/SSL|certificate|TLS/i', $reason ) ) {
		return __( 'The certificate of the server is not accepted here. Renew it, or check that the address has the name that it is for.', 'reelgate' );
	}
	if ( preg_match( '/timed? ?out/i', $reason ) ) {
		return __( 'The server did not answer within 10 seconds. Check that it runs, and that a firewall lets this site reach it.', 'reelgate' );
	}
	return __( 'The server could not be reached. Check that it runs, and the port of its address.', 'reelgate' );
}

/** @param mixed $reply what it answered: Reelgate's errors are JSON with a message. */
function refusal_sentence( $status, $reply ) {
	$message = is_array( $reply ) && isset( $reply['message'] ) && is_string( $reply['message'] ) ? $reply['message'] : null;
	if ( null === $message ) {
		if ( $status >= 300 && $status < 400 ) {
			return __( 'This address leads to another one. Enter the one that it leads to, often with https.', 'reelgate' );
		}
		return __( 'What answers at this address is not Reelgate. Check the address: it is the one that your console is at, without /console.', 'reelgate' );
	}
	if ( 401 === $status ) {
		return __( 'The server does not know this API secret. Copy it again, or make a new key in the console under Develop.', 'reelgate' );
	}
	return $message;
}

/** The query of a call. */
function with_query( $path, array $query ) {
	return $path . '?' . http_build_query( $query, '', '&', PHP_QUERY_RFC3986 );
}

/**
 * What works of the connection, and what does not, in words: the permissions of the key, and whether visitors' browsers can play.
 *
 * @return array of array( 'ok' => bool, 'text' => string ).
 */
function test_connection( array $options ) {
	$found = call_api( 'GET', with_query( '/videos', array( 'limit' => 1, 'countUpTo' => 1 ) ), null, $options );
	if ( is_wp_error( $found ) && 403 !== status_of( $found ) ) {
		// A list is never "not found": something else is at this address.
		$sentence = 404 === status_of( $found ) ? refusal_sentence( 404, null ) : $found->get_error_message();
		return array( array( 'ok' => false, 'text' => $sentence ) );
	}
	$nothing = str_repeat( '0', 32 );
	$origin  = site_origin();
	$results = array( array( 'ok' => true, 'text' => __( 'The server answers, and knows the API secret.', 'reelgate' ) ) );
	// What none of these calls can change: a video that does not exist, an upload without a valid time to live.
	$calls = array(
		array( $found, __( 'Search for videos', 'reelgate' ), 'Read', 200 ),
		array( call_api( 'POST', "/videos/$nothing/otp", array(), $options ), __( 'Play videos', 'reelgate' ), 'Issue OTPs', 404 ),
		array( call_api( 'POST', '/upload-tokens', array( 'origin' => $origin, 'ttl' => 0 ), $options ), __( 'Upload videos from the editor', 'reelgate' ), 'Upload', 400 ),
	);
	foreach ( $calls as list( $reply, $what, $permission, $expected ) ) {
		$ok        = ! is_wp_error( $reply ) || status_of( $reply ) === $expected;
		/* translators: 1: what does not work, 2: name of a permission, or a reason */
		$sentence  = 403 === status_of( $reply ) ? __( '%1$s: the key lacks the permission “%2$s”. Make a key that has it, in the console under Develop → API keys.', 'reelgate' ) : '%1$s: %2$s';
		$detail    = 403 === status_of( $reply ) || ! is_wp_error( $reply ) ? $permission : $reply->get_error_message();
		$results[] = array( 'ok' => $ok, 'text' => $ok ? $what : sprintf( $sentence, $what, $detail ) );
	}
	if ( 'https' === wp_parse_url( home_url(), PHP_URL_SCHEME ) && 'https' !== wp_parse_url( $options['server'], PHP_URL_SCHEME ) ) {
		$results[] = array( 'ok' => false, 'text' => __( 'Your site has https and the server has not: browsers block its player. Give the server a certificate.', 'reelgate' ) );
	}
	return $results;
}

/** The status that the server answered with; 0: none. */
function status_of( $reply ) {
	$data = is_wp_error( $reply ) ? $reply->get_error_data() : null;
	return is_array( $data ) ? (int) $data['status'] : 0;
}

/** The origin of this site's pages, as browsers write it. */
function site_origin( $address = null ) {
	$parts = wp_parse_url( $address ?? home_url() );
	$port  = isset( $parts['port'] ) && ( 'https' === $parts['scheme'] ? 443 : 80 ) !== $parts['port'] ? ':' . $parts['port'] : '';
	return strtolower( $parts['scheme'] . '://' . $parts['host'] ) . $port;
}
