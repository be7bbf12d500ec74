<?php
namespace Reelgate;

defined( 'ABSPATH' ) || exit;

/**
 * The watermark of an OTP, and what the server is to know of the viewer for it. The server itself fills in {name}, {email}, {id} and
 * {ip}; only {username} and {date.FORMAT} are this site's.
 *
 * @param string         $code JSON, as the owner saved it.
 * @param \WP_User|false $user false: signed out.
 * @return array|null entries; null: none.
 */
function watermark_for( $code, $user ) {
	/** Filters of the hosted service's plug-in, which sites use. */
	$code    = apply_filters( 'vdocipher_annotate_preprocess', $code );
	$entries = is_string( $code ) ? json_decode( $code, true ) : null;
	if ( ! is_array( $entries ) || array() === $entries ) {
		return null;
	}
	$shown = array();
	foreach ( $entries as $entry ) {
		if ( is_array( $entry ) && isset( $entry['text'] ) && is_string( $entry['text'] ) ) {
			$entry['text'] = fill_text( $entry['text'], $user );
			if ( '' === trim( $entry['text'] ) ) {
				continue;
			}
		}
		$shown[] = $entry;
	}
	$after = apply_filters( 'vdocipher_annotate_postprocess', wp_json_encode( $shown ) );
	$after = is_string( $after ) ? json_decode( $after, true ) : null;
	return is_array( $after ) && array() !== $after ? $after : null;
}

/** In one pass: what is filled in is not read again. */
function fill_text( $text, $user ) {
	return preg_replace_callback(
		'/\{(name|email|id|username|date\.[^{}]{1,40})\}/',
		static function ( $match ) use ( $user ) {
			list( $all, $token ) = $match;
			if ( 0 === strpos( $token, 'date.' ) ) {
				return str_replace( array( '{', '}' ), '', wp_date( substr( $token, 5 ) ) );
			}
			if ( ! $user ) {
				return '';
			}
			// Braces in a name would be places for the server to fill in.
			return 'username' === $token ? str_replace( array( '{', '}' ), '', $user->user_login ) : $all;
		},
		$text
	);
}

/** The viewer of an OTP; null: signed out. Both texts are at most 128 characters. */
function viewer_of( $user ) {
	if ( ! $user ) {
		return null;
	}
	$name  = '' !== (string) $user->display_name ? $user->display_name : $user->user_login;
	$limit = static function ( $text ) {
		return preg_match( '/^.{0,128}/us', (string) $text, $match ) ? $match[0] : '';
	};
	return array_filter( array( 'name' => $limit( $name ), 'email' => $limit( $user->user_email ) ), 'strlen' );
}

/** The same for one user in all sites of a network, and another one for each WordPress that shares an account. */
function viewer_id( $user_id ) {
	return 'wp-' . substr( hash( 'sha256', network_home_url() ), 0, 12 ) . '-' . (int) $user_id;
}
